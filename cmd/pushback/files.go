package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/check"
	"github.com/pushback-dev/pushback/gitsync/render"
	"github.com/pushback-dev/pushback/gitsync/translate"
)

// readManifests reads what files and folders declare, as gitsync would: rendered,
// translated from Argo's kinds, and checked. A folder is read with the repository
// around it, so that a kustomization may name its bases.
func readManifests(paths []string) ([]gitsync.Object, error) {
	var all []gitsync.Object
	for _, path := range paths {
		objects, err := readPath(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, objects...)
	}
	translated, err := translate.Tree(all, "")
	if err != nil {
		return nil, err
	}
	if err := check.Tree(translated, check.Namespaces{}); err != nil {
		return nil, err
	}
	return translated, nil
}

func readPath(path string) ([]gitsync.Object, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(full)
	if err != nil {
		return nil, err
	}
	tree := diskTree{root: filepath.Dir(full), only: filepath.Base(full)}
	folder := "."
	if info.IsDir() {
		tree = diskTree{root: repositoryOf(full)}
		if folder, err = filepath.Rel(tree.root, full); err != nil {
			return nil, err
		}
	}
	result, err := render.Folder(tree, filepath.ToSlash(folder))
	if err != nil {
		return nil, err
	}
	if err := result.Rejected.OrNil(); err != nil {
		return nil, err
	}
	return result.Objects, nil
}

// repositoryOf is the root of the Git repository that a folder is in, or the folder
// where there is none.
func repositoryOf(folder string) string {
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return folder
		}
	}
}

// diskTree is a folder on disk as the renderer reads it; with only, one file of it.
type diskTree struct{ root, only string }

// Entries implements render.Files.
func (t diskTree) Entries() ([]render.Entry, error) {
	if t.only != "" {
		return []render.Entry{{Path: t.only, Mode: 0o100644}}, nil
	}
	var out []render.Entry
	err := filepath.WalkDir(t.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		name, err := filepath.Rel(t.root, path)
		if err != nil {
			return err
		}
		mode := uint32(0o100644)
		if entry.Type()&fs.ModeSymlink != 0 {
			mode = 0o120000
		} else if !entry.Type().IsRegular() {
			return nil
		}
		out = append(out, render.Entry{Path: filepath.ToSlash(name), Mode: mode})
		return nil
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, err
}

// Read implements render.Files.
func (t diskTree) Read(paths []string, limit int64) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, path := range paths {
		full := filepath.Join(t.root, filepath.FromSlash(path))
		info, err := os.Lstat(full)
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0 && t.only == "":
			target, err := os.Readlink(full)
			if err != nil {
				return nil, err
			}
			out[path] = []byte(filepath.ToSlash(target))
			continue
		case info.Size() > limit:
			return nil, &render.TooLargeError{Path: path, Limit: limit}
		}
		if out[path], err = os.ReadFile(full); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// place says where an object is declared.
func place(o gitsync.Object) string {
	if len(o.Files) == 0 {
		return ""
	}
	return strings.Join(o.Files, ", ")
}

var errNoRollout = errors.New("there is no Rollout in it")
