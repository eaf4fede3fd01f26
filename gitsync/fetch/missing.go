package fetch

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pushback-dev/pushback/gitsync"
)

// absent are the objects that stand between a tree and its files.
type absent struct {
	// blobs that are not there, and the trees of the folders that hold them.
	blobs, trees []plumbing.Hash
	// notFound is the first prefix that does not exist.
	notFound error
	// err ends the walk.
	err error
}

// missing walks the prefixes, and what links below them lead to.
func (t *Tree) missing(prefixes []string) absent {
	m := absent{}
	seen := map[plumbing.Hash]bool{}
	want := func(blob plumbing.Hash) {
		if !seen[blob] {
			seen[blob] = true
			m.blobs = append(m.blobs, blob)
		}
	}
	for _, prefix := range prefixes {
		before := len(m.blobs)
		start, err := t.Stat(prefix)
		var hidden *NotLoadedError
		switch {
		case errors.As(err, &hidden):
			want(hidden.blob)
			m.trees = append(m.trees, t.root)
			continue
		case errors.Is(err, gitsync.ErrPathNotFound):
			if m.notFound == nil {
				m.notFound = err
			}
			continue
		case errors.Is(err, gitsync.ErrUnusable):
			continue // whoever reads it will be told
		case err != nil:
			m.err = err
			return m
		}
		if m.err = t.collect(start, want); m.err != nil {
			return m
		}
		if len(m.blobs) > before && start.Mode == ModeDir {
			m.trees = append(m.trees, plumbing.NewHash(start.Hash))
		} else if len(m.blobs) > before {
			m.trees = append(m.trees, t.root)
		}
	}
	return m
}

// collect calls want for every blob below an entry that is not there.
func (t *Tree) collect(entry Entry, want func(plumbing.Hash)) error {
	if entry.Mode != ModeDir {
		return t.collectFile(entry, want)
	}
	entries, err := t.objects.entries(plumbing.NewHash(entry.Hash))
	if err != nil {
		return err
	}
	for _, child := range entries {
		child.Path = clean(entry.Path + "/" + child.Path)
		if err := t.collect(child, want); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) collectFile(entry Entry, want func(plumbing.Hash)) error {
	if entry.Mode == ModeSubmodule {
		return nil
	}
	hash := plumbing.NewHash(entry.Hash)
	if _, state := t.objects.state(hash); state != blobHeld {
		if state == blobMissing {
			want(hash)
		}
		return nil
	}
	if entry.Mode != ModeSymlink {
		return nil
	}
	return t.collectLink(entry, want)
}

// collectLink wants the file that a link leads to; a linked folder is only
// loaded when a prefix names it, since a walk does not enter it.
func (t *Tree) collectLink(link Entry, want func(plumbing.Hash)) error {
	target, err := t.Stat(link.Path)
	var hidden *NotLoadedError
	switch {
	case errors.As(err, &hidden):
		want(hidden.blob)
		return nil
	case errors.Is(err, gitsync.ErrUnusable), errors.Is(err, gitsync.ErrPathNotFound):
		return nil
	case err != nil:
		return err
	case target.Mode == ModeDir:
		return nil
	}
	return t.collectFile(target, want)
}

// leaveOut marks the blobs that the server left out for their size.
func (o *objects) leaveOut(blobs []plumbing.Hash) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, blob := range blobs {
		if o.storage.HasEncodedObject(blob) != nil {
			o.oversize[blob] = true
		}
	}
}
