package validation

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// minInterval between polls.
const minInterval = time.Second

// defaultBranch is followed when ref names none.
const defaultBranch = "main"

// GitSync returns what is wrong with a GitSync's spec, ordered by field. No
// message holds a part of the URL that could be a secret.
func GitSync(spec v1alpha1.GitSyncSpec) []Problem {
	var c collector
	c.refuse(notBuiltGitSync, spec)
	if spec.Interval.Duration < minInterval {
		c.add("spec.interval", "it is %s and must be %s or more", spec.Interval.Duration, minInterval)
	}
	if spec.Timeout != nil && spec.Timeout.Duration < minInterval {
		c.add("spec.timeout", "it is %s and must be %s or more", spec.Timeout.Duration, minInterval)
	}
	c.repository(spec.URL)
	c.folder(spec.Path)
	if spec.SecretRef != nil && spec.SecretRef.Name == "" {
		c.add("spec.secretRef.name", "name the Secret")
	}
	if n := spec.ServiceAccountName; n != "" && len(names.IsDNS1123Subdomain(n)) > 0 {
		c.add("spec.serviceAccountName", "%q is no name of a ServiceAccount in the GitSync's namespace", n)
	}
	if n := spec.TargetNamespace; n != "" && len(names.IsDNS1123Label(n)) > 0 {
		c.add("spec.targetNamespace", "%q is no name of a namespace", n)
	}
	if modes := []v1alpha1.GitSyncMode{"", v1alpha1.GitSyncModeSync, v1alpha1.GitSyncModeObserve}; !slices.Contains(modes, spec.Mode) {
		c.add("spec.mode", "%q is neither Sync nor Observe", spec.Mode)
	}
	c.branches(spec)
	if spec.Revert != nil {
		c.revert(*spec.Revert)
	}
	return c.list()
}

// repository: a user name is part of an ssh address and no secret; all else that
// could be one belongs into the Secret.
func (c *collector) repository(text string) {
	const field = "spec.url"
	u, err := url.Parse(text)
	if err != nil {
		c.add(field, "it is no URL, such as https://example.com/group/repository.git") // the error holds the URL
		return
	}
	_, password := u.User.Password()
	switch {
	case !slices.Contains([]string{"https", "http", "ssh", "file"}, u.Scheme):
		c.add(field, "it must begin with https://, http://, ssh:// or file://")
	case password, u.User != nil && u.Scheme != "ssh":
		c.add(field, "it holds a user or a password: put them into a Secret and name it in secretRef")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		c.add(field, "it holds a query or a fragment: put tokens into a Secret and name it in secretRef")
	case u.Scheme != "file" && u.Hostname() == "":
		c.add(field, "it names no host")
	case u.Scheme == "file" && u.Host != "":
		c.add(field, "a file URL has three slashes: file:///path/to/repository")
	case strings.Trim(u.Path, "/") == "":
		c.add(field, "it names no repository")
	}
}

func (c *collector) folder(text string) {
	const field = "spec.path"
	switch {
	case text == "":
	case strings.ContainsAny(text, "\\\x00"):
		c.add(field, "it is written with slashes and without control characters")
	case path.IsAbs(text):
		c.add(field, "it is relative to the root of the repository: leave the first slash out")
	case slices.Contains(strings.Split(text, "/"), ".."):
		c.add(field, "it must not leave the repository: write it without ..")
	}
}

func (c *collector) branches(spec v1alpha1.GitSyncSpec) {
	followed := defaultBranch
	if spec.Ref != nil && spec.Ref.Branch != "" {
		followed = spec.Ref.Branch
		c.branch("spec.ref.branch", followed)
	}
	if spec.Revert == nil || spec.Revert.Branch == "" || spec.Revert.Branch == followed {
		return
	}
	c.add("spec.revert.branch", "another branch than the one that is followed (%s) is not built yet, and refused because it would be ignored: leave it out", followed)
}

// branch follows git check-ref-format.
func (c *collector) branch(field, name string) {
	bad := name == "@" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\")
	for _, part := range strings.Split(name, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	for _, r := range name {
		bad = bad || r < ' ' || r == 0x7f
	}
	if bad {
		c.add(field, "%q is no name of a branch (without refs/heads/)", name)
	}
}
