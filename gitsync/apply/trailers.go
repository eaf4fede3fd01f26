package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// commits are those whose trailers count, newest first.
func (in In) commits() []Commit { return append([]Commit{in.Commit}, in.Between...) }

// retry is a trailer that asks for another try of a hash, and its commit.
type retry struct {
	hash   string
	commit Commit
}

// retries are the trailers that are this Rollout's, newest commit first: those of
// the hash that is declared, and of those that it has rejected.
func (in In) retries(hash string, live *unstructured.Unstructured) []retry {
	known := []string{hash}
	if live != nil {
		rejected, _, _ := unstructured.NestedSlice(live.Object, "status", "rejected")
		for _, version := range list(rejected) {
			known = append(known, text(version["hash"]))
		}
	}
	var out []retry
	for _, commit := range in.commits() {
		for _, wanted := range commit.Retry {
			if slices.Contains(known, wanted) {
				out = append(out, retry{hash: wanted, commit: commit})
			}
		}
	}
	return out
}

// irreversible is true when a commit's trailer names the Rollout.
func (in In) irreversible(namespace, name string) bool {
	return slices.ContainsFunc(in.commits(), func(c Commit) bool {
		return slices.Contains(c.Irreversible, name) || slices.Contains(c.Irreversible, namespace+"/"+name)
	})
}

func hashesOf(retries []retry) []string {
	var out []string
	for _, r := range retries {
		if !slices.Contains(out, r.hash) {
			out = append(out, r.hash)
		}
	}
	return out
}

func commitsOf(retries []retry) []string {
	var out []string
	for _, r := range retries {
		if hash := r.commit.Revision.Hash; !slices.Contains(out, hash) {
			out = append(out, hash)
		}
	}
	return out
}
