package fetch

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/pushback-dev/pushback/gitsync"
)

// Limits bound what a server can make this process hold. Zero fields take the defaults.
type Limits struct {
	// Blob is the largest file that is read, in bytes. Default 1 MiB.
	Blob int64
	// Response is the most bytes of one answer. Default 256 MiB.
	Response int64
	// Inflated is the most bytes that one pack may unpack to. Default 1 GiB.
	Inflated int64
	// Objects is the most objects of one pack. Default 2,000,000.
	Objects uint32
}

func (l Limits) withDefaults() Limits {
	if l.Blob == 0 {
		l.Blob = 1 << 20
	}
	if l.Response == 0 {
		l.Response = 256 << 20
	}
	if l.Inflated == 0 {
		l.Inflated = 1 << 30
	}
	if l.Objects == 0 {
		l.Objects = 2_000_000
	}
	return l
}

// Store holds the newest commit that was fetched from one Remote, in memory, so
// that the next one costs what changed and no more. Keep one per Remote.Key and
// share it: its calls run one at a time, and each waits no longer than its context.
type Store struct {
	limits Limits
	// busy is a mutex that a context can end the waiting for.
	busy chan struct{}

	// the rest is guarded by busy

	key  string
	wire *wire
	// old says that the server answered protocol v2 with something else.
	old bool
	// capabilities of the server's git-upload-pack; nil before the first fetch.
	capabilities *capability.List
	// unfiltered says that the server would not give single blobs afterwards.
	unfiltered bool
	// commitFilter is the index in commitFilters of the one that the server takes.
	commitFilter int
	objects      *objects
	tip          plumbing.Hash
	// baseSize is the size of objects after the last clone.
	baseSize int64
}

// NewStore makes an empty store. It does no I/O.
func NewStore(limits Limits) *Store {
	return &Store{limits: limits.withDefaults(), busy: make(chan struct{}, 1)}
}

// Head reads the commit that the branch is at: the idle poll. Nothing is downloaded.
func (s *Store) Head(ctx context.Context, r Remote) (string, error) {
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return "", err
	}
	defer unlock()
	hash, err := s.wire.head(ctx, &s.old)
	if err != nil {
		return "", s.wire.fail(ctx, "read", err)
	}
	return hash.String(), nil
}

// Fetch reads the head of the branch and downloads what is new of it: the
// folders, and the files below the given prefixes ("" or none: all of them).
// Files over Limits.Blob are left on the server where it can leave them out.
//
// A branch that was rewritten is followed. A store that turns out to lack an
// object is dropped and filled anew, once. Errors are *gitsync.Error.
func (s *Store) Fetch(ctx context.Context, r Remote, prefixes ...string) (*Tree, error) {
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	tree, err := s.fetch(ctx, prefixes)
	if class := gitsync.ClassOf(err); err != nil && (class == gitsync.ErrCorrupt || class == gitsync.ErrRace) {
		s.drop()
		tree, err = s.fetch(ctx, prefixes)
	}
	return tree, err
}

// Load downloads the files of t below more prefixes; those that are there
// already cost nothing. A prefix that does not exist is an error of class
// ErrPathNotFound, after all others were loaded.
func (s *Store) Load(ctx context.Context, r Remote, t *Tree, prefixes ...string) error {
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return err
	}
	defer unlock()
	return s.wire.fail(ctx, "fetch", s.load(ctx, t, prefixes))
}

func (s *Store) fetch(ctx context.Context, prefixes []string) (*Tree, error) {
	tip, err := s.wire.head(ctx, &s.old)
	if err != nil {
		return nil, s.wire.fail(ctx, "read", err)
	}
	if s.objects == nil || s.tip != tip {
		if err := s.advance(ctx, tip); err != nil {
			return nil, s.wire.fail(ctx, "fetch", err)
		}
	}
	tree, err := s.objects.tree(tip)
	if err != nil {
		return nil, s.wire.fail(ctx, "read", err)
	}
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	if err := s.load(ctx, tree, prefixes); err != nil && !errors.Is(err, gitsync.ErrPathNotFound) {
		return nil, s.wire.fail(ctx, "fetch", err)
	}
	return tree, nil
}

// lock waits for its turn and points the store at r. Another URL, branch or
// credential empties it: nobody reads what only somebody else's token opened.
func (s *Store) lock(ctx context.Context, r Remote) (func(), error) {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, &gitsync.Error{Class: gitsync.ErrTransient, Op: "read " + r.String(),
			Words: "waiting for another operation on this branch: " + ctx.Err().Error(), Cause: ctx.Err()}
	}
	unlock := func() { <-s.busy }
	if key := r.Key(); s.wire == nil || s.key != key {
		if s.wire != nil {
			s.wire.close()
		}
		s.drop()
		s.old, s.unfiltered, s.commitFilter, s.wire = false, false, 0, nil
		made, err := newWire(r, s.limits.Response)
		if err != nil {
			unlock()
			return nil, err
		}
		s.wire, s.key = made, key
	}
	return unlock, nil
}

// drop forgets all objects. Trees that were handed out keep theirs.
func (s *Store) drop() {
	s.objects, s.tip, s.capabilities, s.baseSize = nil, plumbing.ZeroHash, nil, 0
}
