package render

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var errReadOnly = errors.New("the repository is read-only here")

// repositoryFS shows a tree to kustomize as a file system whose root is the
// repository: there is nothing outside. It notes what was read.
type repositoryFS struct {
	tree *tree
	// extra are files that are not in the tree, or not as they are there, by path.
	extra map[string][]byte
	read  map[string]bool
}

func (f *repositoryFS) resolve(p string) (string, error) { return f.tree.resolve(filepath.ToSlash(p)) }

// ReadFile returns the bytes of a file.
func (f *repositoryFS) ReadFile(p string) ([]byte, error) {
	if cleaned, err := clean(filepath.ToSlash(p)); err == nil {
		if data, ok := f.extra[cleaned]; ok {
			if real, err := f.resolve(p); err == nil {
				f.read[real] = true
			}
			return data, nil
		}
	}
	real, err := f.resolve(p)
	if err != nil {
		return nil, err
	}
	if f.tree.isFolder(real) {
		return nil, &fs.PathError{Op: "read", Path: p, Err: errors.New("is a folder")}
	}
	f.read[real] = true
	return f.tree.read(real)
}

// CleanedAbs splits a path into its folder and its file, links resolved.
func (f *repositoryFS) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	if cleaned, err := clean(filepath.ToSlash(p)); err == nil && f.extra[cleaned] != nil {
		return filesys.ConfirmedDir("/" + parentOf(cleaned)), path.Base(cleaned), nil
	}
	real, err := f.resolve(p)
	if err != nil {
		return "", "", err
	}
	if f.tree.isFolder(real) {
		return filesys.ConfirmedDir("/" + real), "", nil
	}
	return filesys.ConfirmedDir("/" + parentOf(real)), path.Base(real), nil
}

// Exists is true for files and folders.
func (f *repositoryFS) Exists(p string) bool {
	_, _, err := f.CleanedAbs(p)
	return err == nil
}

// IsDir is true for folders.
func (f *repositoryFS) IsDir(p string) bool {
	real, err := f.resolve(p)
	return err == nil && f.tree.isFolder(real)
}

// ReadDir lists the names in a folder.
func (f *repositoryFS) ReadDir(p string) ([]string, error) {
	real, err := f.resolve(p)
	if err != nil {
		return nil, err
	}
	return f.tree.folders[real], nil
}

// The rest of filesys.FileSystem is not for a repository that is only read.

// Create refuses.
func (f *repositoryFS) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir refuses.
func (f *repositoryFS) Mkdir(string) error { return errReadOnly }

// MkdirAll refuses.
func (f *repositoryFS) MkdirAll(string) error { return errReadOnly }

// RemoveAll refuses.
func (f *repositoryFS) RemoveAll(string) error { return errReadOnly }

// Open refuses: kustomize reads with ReadFile.
func (f *repositoryFS) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Glob refuses: kustomize's builds don't use it.
func (f *repositoryFS) Glob(string) ([]string, error) { return nil, errReadOnly }

// WriteFile refuses.
func (f *repositoryFS) WriteFile(string, []byte) error { return errReadOnly }

// Walk refuses: kustomize's builds don't use it.
func (f *repositoryFS) Walk(string, filepath.WalkFunc) error { return errReadOnly }
