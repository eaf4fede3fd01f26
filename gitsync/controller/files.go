package controller

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"sync"

	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
	"github.com/pushback-dev/pushback/gitsync/render"
)

// treeFiles shows a commit's tree to the render step, with some files replaced.
// What was left on the server is downloaded when it is asked for.
type treeFiles struct {
	ctx    context.Context
	tree   *fetch.Tree
	store  *fetch.Store
	remote fetch.Remote
	// edits are new bytes by real path.
	edits map[string][]byte
	// listing keeps what Entries found, for the many renders of one tree.
	listing *listing
}

type listing struct {
	once    sync.Once
	entries []render.Entry
	err     error
}

func openTree(ctx context.Context, tree *fetch.Tree, store *fetch.Store, remote fetch.Remote) treeFiles {
	return treeFiles{ctx: ctx, tree: tree, store: store, remote: remote, listing: &listing{}}
}

var _ render.Files = treeFiles{}

// Entries lists every file, link and submodule.
func (f treeFiles) Entries() ([]render.Entry, error) {
	f.listing.once.Do(func() { f.listing.entries, f.listing.err = f.list() })
	return f.listing.entries, f.listing.err
}

func (f treeFiles) list() ([]render.Entry, error) {
	var out []render.Entry
	err := f.tree.Walk("", func(entry fetch.Entry) error {
		mode, err := strconv.ParseUint(string(entry.Mode), 8, 32)
		if err != nil {
			return err
		}
		out = append(out, render.Entry{Path: entry.Path, Mode: uint32(mode)})
		return nil
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, err
}

// Read returns files as Git has them, or as the edits have them.
func (f treeFiles) Read(paths []string, limit int64) (map[string][]byte, error) {
	out := make(map[string][]byte, len(paths))
	var missing []string
	for _, p := range paths {
		if edited, ok := f.edits[p]; ok {
			out[p] = edited
			continue
		}
		data, err := f.read(p)
		var left *fetch.NotLoadedError
		switch {
		case errors.As(err, &left):
			missing = append(missing, p)
			continue
		case err != nil:
			return nil, manifestError(p, err)
		}
		out[p] = data
	}
	if len(missing) > 0 {
		if err := f.store.Load(f.ctx, f.remote, f.tree, missing...); err != nil {
			return nil, err
		}
		for _, p := range missing {
			data, err := f.read(p)
			if err != nil {
				return nil, manifestError(p, err)
			}
			out[p] = data
		}
	}
	for p, data := range out {
		if int64(len(data)) > limit {
			return nil, &render.TooLargeError{Path: p, Limit: limit}
		}
	}
	return out, nil
}

// read returns a file's bytes; of a link, where it leads, from its own folder.
func (f treeFiles) read(p string) ([]byte, error) {
	real, err := f.stat(p)
	if err != nil {
		return nil, err
	}
	if real == p {
		data, _, err := f.tree.ReadFile(p)
		return data, err
	}
	target, err := filepath.Rel("/"+path.Dir(p), "/"+real)
	return []byte(filepath.ToSlash(target)), err
}

// maxLinks bounds the links on the way to a file.
const maxLinks = 40

// stat is where a path leads. The links on the way are downloaded one by one.
func (f treeFiles) stat(p string) (string, error) {
	var err error
	for range maxLinks {
		var entry fetch.Entry
		entry, err = f.tree.Stat(p)
		var left *fetch.NotLoadedError
		if !errors.As(err, &left) {
			return entry.Path, err
		}
		if err := f.store.Load(f.ctx, f.remote, f.tree, left.Path); err != nil {
			return "", err
		}
	}
	return "", err
}

// manifestError makes what is wrong with a file in Git an error that names it.
func manifestError(p string, err error) error {
	var wrong *gitsync.Error
	if errors.As(err, &wrong) && (wrong.Class == gitsync.ErrUnusable || wrong.Class == gitsync.ErrPathNotFound) {
		return gitsync.ManifestErrors{{File: p, Problem: wrong.Words}}
	}
	return err
}
