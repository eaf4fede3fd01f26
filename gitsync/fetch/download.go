package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/pushback-dev/pushback/gitsync"
)

// growth is how much a store may grow over its size after a clone, beside
// doubling, before it is filled anew: it never frees what old commits held.
const growth = 16 << 20

// advance brings the objects of the commit tip into the store.
func (s *Store) advance(ctx context.Context, tip plumbing.Hash) error {
	if s.objects != nil && s.objects.size() <= 2*s.baseSize+growth {
		err := s.download(ctx, s.objects, request{wants: []plumbing.Hash{tip}, shallow: s.tip})
		if err == nil {
			s.tip = tip
			return nil
		}
		// A fresh clone helps when what is held doesn't fit, not when we aren't let in.
		if ctx.Err() != nil || s.wire.classify(err) == gitsync.ErrAuth || s.wire.recorder.wait() > 0 {
			return err
		}
	}
	s.drop()
	fresh := newObjects(s.limits.Blob)
	if err := s.download(ctx, fresh, request{wants: []plumbing.Hash{tip}, commit: true}); err != nil {
		return err
	}
	s.objects, s.tip, s.baseSize = fresh, tip, fresh.size()
	return nil
}

// request is what to ask a server for.
type request struct {
	// wants are commits, or blobs and trees of the commit that is there.
	wants []plumbing.Hash
	// commit says that the wants are one commit, of which we have nothing.
	commit bool
	// shallow is the commit that we have, of which the want is a newer one.
	shallow plumbing.Hash
	// have is a commit that need not be here: what it reaches is left out. Filter
	// says what else is; empty nothing.
	have   plumbing.Hash
	filter packp.Filter
	// below leaves out blobs that are larger than so many bytes; 0 gives all that are wanted.
	below int64
	// most bytes of the pack; 0 means Limits.Response.
	most int64
}

// download asks for objects and puts them into o.
func (s *Store) download(ctx context.Context, o *objects, ask request) error {
	session, err := s.wire.upload(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	if s.capabilities == nil || !s.wire.stateless {
		refs, err := session.AdvertisedReferencesContext(ctx)
		if err != nil {
			return err
		}
		s.capabilities = refs.Capabilities
	}
	req := s.compose(ask)
	res, err := session.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	defer res.Close()
	var from io.Reader = res
	if req.Capabilities.Supports(capability.Sideband64k) {
		from = sideband.NewDemuxer(sideband.Sideband64k, res)
	}
	if ask.most > 0 {
		from = &capped{from: from, left: ask.most}
	}
	return s.unpack(ctx, o, from)
}

// compose writes the request. One for a tree is one commit deep, as a thin pack
// against what we have, and without blobs where single ones can be had afterwards.
func (s *Store) compose(ask request) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequest()
	req.Wants = ask.wants
	for _, c := range []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.NoProgress, capability.Shallow} {
		if s.capabilities.Supports(c) {
			_ = req.Capabilities.Set(c)
		}
	}
	_ = req.Capabilities.Set(capability.Agent, capability.DefaultAgent())
	if ask.have == plumbing.ZeroHash {
		_ = req.Capabilities.Set(capability.ThinPack) // else there would be nothing to complete the pack from
	} else {
		req.Haves, req.Filter = []plumbing.Hash{ask.have}, ask.filter
	}
	if ask.commit || ask.shallow != plumbing.ZeroHash {
		_ = req.Capabilities.Set(capability.Shallow)
		req.Depth = packp.DepthCommits(1)
		if s.filters() {
			req.Filter = packp.FilterBlobNone()
		}
	}
	if ask.shallow != plumbing.ZeroHash {
		req.Shallows = []plumbing.Hash{ask.shallow}
		req.Haves = []plumbing.Hash{ask.shallow}
	}
	if ask.below > 0 {
		req.Filter = packp.FilterBlobLimit(uint64(ask.below), packp.BlobLimitPrefixNone)
	}
	if req.Filter != "" {
		_ = req.Capabilities.Set(capability.Filter)
	}
	return req
}

// filters says whether blobs can be left out now and asked for later: a server
// with a memory (ssh, file) refuses to give a blob by its hash, unless it says otherwise.
func (s *Store) filters() bool {
	if s.unfiltered || !s.capabilities.Supports(capability.Filter) {
		return false
	}
	return s.wire.stateless || s.capabilities.Supports(capability.AllowReachableSHA1InWant)
}

// unpack reads the whole pack first, so that readers of o wait for no network.
func (s *Store) unpack(ctx context.Context, o *objects, from io.Reader) error {
	pack, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(pack)), o.storage,
		&bounds{objects: s.limits.Objects, left: s.limits.Inflated})
	if err == nil {
		_, err = parser.Parse()
	}
	switch {
	case errors.Is(err, errTooMuch):
		return err
	case err != nil:
		return corrupt("the pack", err)
	}
	return nil
}

// bounds watches a pack being parsed and stops it when it grows too large.
type bounds struct {
	objects uint32
	left    int64
}

// OnHeader checks the number of objects.
func (b *bounds) OnHeader(count uint32) error {
	if count > b.objects {
		return fmt.Errorf("%w: %d objects", errTooMuch, count)
	}
	return nil
}

// OnInflatedObjectHeader sums up the sizes.
func (b *bounds) OnInflatedObjectHeader(_ plumbing.ObjectType, size int64, _ int64) error {
	if b.left -= size; b.left < 0 {
		return fmt.Errorf("%w: it unpacks to too many bytes", errTooMuch)
	}
	return nil
}

// OnInflatedObjectContent does nothing.
func (b *bounds) OnInflatedObjectContent(plumbing.Hash, int64, uint32, []byte) error { return nil }

// OnFooter does nothing.
func (b *bounds) OnFooter(plumbing.Hash) error { return nil }

// fewBlobs are asked for one by one; more of them, folder by folder.
const fewBlobs = 64

// rounds bounds the walk: every link that leads to another folder takes one.
const rounds = maxLinks

// load downloads the files below the prefixes, and those that links lead to.
func (s *Store) load(ctx context.Context, t *Tree, prefixes []string) error {
	for range rounds {
		found := t.missing(prefixes)
		if found.err != nil {
			return found.err
		}
		if len(found.blobs) == 0 {
			return found.notFound
		}
		if err := s.loadBlobs(ctx, t, found); err != nil {
			return err
		}
	}
	return unusable(strings.Join(prefixes, ", "), "links lead from folder to folder too often")
}

// packSlack is what a pack may hold beside the bytes of its files.
const packSlack = 64 << 10

// loadBlobs asks for a few blobs one by one, and for more of them, or large
// ones, folder by folder: only a folder can be asked for with a limit on the
// size of its files.
func (s *Store) loadBlobs(ctx context.Context, t *Tree, found absent) error {
	err := errTooMuch
	if len(found.blobs) <= fewBlobs {
		most := int64(len(found.blobs))*s.limits.Blob + packSlack
		err = s.download(ctx, t.objects, request{wants: found.blobs, most: most})
	}
	if errors.Is(err, errTooMuch) {
		err = s.download(ctx, t.objects, request{wants: found.trees, below: s.limits.Blob + 1})
		if err == nil {
			t.objects.leaveOut(found.blobs)
		}
	}
	if err == nil || s.unfiltered || ctx.Err() != nil {
		return err
	}
	if class := s.wire.classify(err); class != gitsync.ErrRace && class != gitsync.ErrCorrupt {
		return err
	}
	// A server that leaves blobs out and then gives none: take everything at once.
	s.unfiltered = true
	return &gitsync.Error{Class: gitsync.ErrRace, Op: "fetch " + s.wire.remote.String(),
		Words: gitsync.Scrub(err.Error(), s.wire.remote.secrets()...)}
}
