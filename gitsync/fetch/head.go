package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/pushback-dev/pushback/gitsync"
)

// Head reads the commit that a branch is at, and nothing else: one request of
// some hundred bytes where the server speaks protocol v2 over HTTP, and the list
// of all refs elsewhere. A Store remembers which, so poll with Store.Head.
//
// Errors are *gitsync.Error, with the classes ErrEmptyRepository and
// ErrBranchNotFound among them.
func Head(ctx context.Context, r Remote) (string, error) {
	return NewStore(Limits{}).Head(ctx, r)
}

// head asks by v2 where that works. A server that answers v2 with anything but
// the branch is asked again by v0, which tells an empty repository from a missing branch.
func (w *wire) head(ctx context.Context, old *bool) (plumbing.Hash, error) {
	if w.stateless && !*old {
		hash, err := w.lsRefs(ctx)
		if err == nil {
			return hash, nil
		}
		if ctx.Err() != nil {
			return plumbing.ZeroHash, err
		}
		*old = errors.Is(err, errNotV2)
	}
	session, err := w.upload(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return w.advertised(refs)
}

// advertised finds the branch in an advertisement.
func (w *wire) advertised(refs *packp.AdvRefs) (plumbing.Hash, error) {
	hash, ok := refs.References[w.remote.ref()]
	if !ok {
		return plumbing.ZeroHash, &gitsync.Error{Class: gitsync.ErrBranchNotFound, Op: "read " + w.remote.String(),
			Words: fmt.Sprintf("the repository has no branch %s", w.remote.Branch)}
	}
	return hash, nil
}

// errNotV2 is an answer that isn't protocol v2's.
var errNotV2 = errors.New("the server does not speak protocol v2")

// maxRefs is the most bytes of an answer to ls-refs for one prefix.
const maxRefs = 1 << 20

// lsRefs posts an ls-refs command without the discovery before it, which git's
// own server and the large hosts accept. Redirects are not followed here: the
// way through go-git knows what may be sent where.
func (w *wire) lsRefs(ctx context.Context) (plumbing.Hash, error) {
	var body bytes.Buffer
	lines := pktline.NewEncoder(&body)
	_ = lines.EncodeString("command=ls-refs\n", "agent="+capability.DefaultAgent())
	body.WriteString("0001") // the delimiter, which pktline has no word for
	_ = lines.EncodeString("ref-prefix " + w.remote.ref() + "\n")
	_ = lines.Flush()
	target := strings.TrimSuffix(w.url.String(), "/") + "/git-upload-pack"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, &body)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	req.Header.Set("Git-Protocol", "version=2")
	req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	req.Header.Set("Accept", "application/x-git-upload-pack-result")
	req.Header.Set("User-Agent", capability.DefaultAgent())
	if w.auth != nil {
		w.auth.SetAuth(req)
	}
	client := &http.Client{Transport: w.recorder, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return plumbing.ZeroHash, fmt.Errorf("ls-refs: status %d", res.StatusCode)
	}
	return findRef(io.LimitReader(res.Body, maxRefs), w.remote.ref())
}

// findRef reads lines "<hash> <name>" up to a flush.
func findRef(from io.Reader, name string) (plumbing.Hash, error) {
	scanner := pktline.NewScanner(from)
	for scanner.Scan() {
		line := strings.TrimSuffix(string(scanner.Bytes()), "\n")
		if line == "" {
			return plumbing.ZeroHash, errors.New("ls-refs: no such branch")
		}
		hash, rest, _ := strings.Cut(line, " ")
		if !gitsync.IsHash(hash) {
			return plumbing.ZeroHash, errNotV2
		}
		if ref, _, _ := strings.Cut(rest, " "); ref == name {
			return plumbing.NewHash(hash), nil
		}
	}
	return plumbing.ZeroHash, errNotV2
}
