package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Git's file modes.
const (
	modeSymlink   uint32 = 0o120000
	modeSubmodule uint32 = 0o160000
)

// Entry is a file of a tree.
type Entry struct {
	// Path from the repository's root, with slashes.
	Path string
	// Mode as Git keeps it: 0100644, 0100755, 0120000 (symbolic link) or 0160000 (submodule).
	Mode uint32
}

// Files is the tree of one commit. It doesn't change.
type Files interface {
	// Entries lists every file of the tree, sorted by path.
	Entries() ([]Entry, error)
	// Read returns the bytes of files by path; of a symbolic link, its target as
	// text. Asking for many at once is cheaper than one by one. A file of more than
	// limit bytes is a *TooLargeError.
	Read(paths []string, limit int64) (map[string][]byte, error)
}

// TooLargeError says that a file has more bytes than may be read.
type TooLargeError struct {
	Path  string
	Limit int64
}

// Error names the file and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has more than %d bytes", e.Path, e.Limit)
}

// Limits on what a repository may ask of the controller, so that one GitSync
// can't take the others' time or memory.
const (
	// maxFileBytes is the size of one file.
	maxFileBytes = 10 << 20
	// maxTotalBytes is the size of all files that one render reads.
	maxTotalBytes = 100 << 20
	// maxFiles is how many files one render reads.
	maxFiles = 10000
	// maxFolders is how deep folders, and kustomizations that name each other, may nest.
	maxFolders = 50
	// maxLinks is how many symbolic links one path may go through.
	maxLinks = 40
	// maxDepth is how deep the values of a document may nest.
	maxDepth = 200
	// maxNodes is how many values a document may hold once its aliases are expanded.
	maxNodes = 1000000
)

var (
	errOutside   = errors.New("leads out of the repository")
	errLinkLoop  = errors.New("is a loop of symbolic links")
	errSubmodule = errors.New("is in a submodule, which isn't read: put the files into this repository")
	errLFS       = errors.New("is kept in Git LFS, which isn't read: commit the file itself")
)

// tree is an index of Files with the bytes that were read so far. All of its
// paths are clean and relative to the repository's root; the root is "".
type tree struct {
	files   Files
	mode    map[string]uint32
	folders map[string][]string
	data    map[string][]byte
	total   int64
}

func newTree(files Files) (*tree, error) {
	entries, err := files.Entries()
	if err != nil {
		return nil, err
	}
	t := &tree{
		files: files, mode: make(map[string]uint32, len(entries)),
		folders: map[string][]string{"": nil}, data: map[string][]byte{},
	}
	for _, entry := range entries {
		t.mode[entry.Path] = entry.Mode
		child := entry.Path
		for child != "" {
			parent := parentOf(child)
			_, known := t.folders[parent]
			t.folders[parent] = append(t.folders[parent], path.Base(child))
			if known {
				break // its own parents were entered when it was
			}
			child = parent
		}
	}
	for folder, names := range t.folders {
		sort.Strings(names)
		t.folders[folder] = names
	}
	return t, nil
}

func parentOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// clean makes a path relative to the root, and refuses one that leaves it.
func clean(p string) (string, error) {
	joined := path.Join(".", strings.TrimPrefix(p, "/"))
	switch {
	case joined == ".":
		return "", nil
	case joined == "..", strings.HasPrefix(joined, "../"):
		return "", errOutside
	}
	return joined, nil
}

// resolve follows symbolic links in any part of a path. The result exists as a
// file or a folder; an error wraps fs.ErrNotExist when it doesn't.
func (t *tree) resolve(p string) (string, error) {
	return t.follow(p, maxLinks)
}

func (t *tree) follow(p string, links int) (string, error) {
	p, err := clean(p)
	if err != nil || p == "" {
		return p, err
	}
	parts := strings.Split(p, "/")
	for i := range parts {
		prefix := strings.Join(parts[:i+1], "/")
		mode, isFile := t.mode[prefix]
		switch {
		case isFile && mode == modeSubmodule:
			return "", errSubmodule
		case isFile && mode == modeSymlink:
			if links == 0 {
				return "", errLinkLoop
			}
			target, err := t.link(prefix)
			if err != nil {
				return "", err
			}
			rest := strings.Join(parts[i+1:], "/")
			return t.follow(path.Join(target, rest), links-1)
		}
	}
	if _, isFile := t.mode[p]; isFile {
		return p, nil
	}
	if _, isFolder := t.folders[p]; isFolder {
		return p, nil
	}
	return "", fmt.Errorf("is not in the repository: %w", fs.ErrNotExist)
}

// link returns where a symbolic link points, from the root.
func (t *tree) link(p string) (string, error) {
	data, err := t.read(p)
	if err != nil {
		return "", err
	}
	target := string(data)
	if strings.HasPrefix(target, "/") {
		return "", errOutside
	}
	// path.Join would clip a target that leaves the root; clean sees it this way.
	return clean(path.Join("./"+parentOf(p), target))
}

// isFolder is true for a resolved path that is a folder.
func (t *tree) isFolder(p string) bool {
	_, ok := t.folders[p]
	return ok
}

// load reads files of resolved paths in one request.
func (t *tree) load(paths []string) error {
	var missing []string
	seen := map[string]bool{}
	for _, p := range paths {
		if _, have := t.data[p]; !have && !seen[p] {
			seen[p] = true
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if len(t.data)+len(missing) > maxFiles {
		return fmt.Errorf("more than %d files: split the folder over several GitSyncs", maxFiles)
	}
	read, err := t.files.Read(missing, maxFileBytes)
	if err != nil {
		return err
	}
	for _, p := range missing {
		data, ok := read[p]
		if !ok {
			return fmt.Errorf("%s: %w", p, fs.ErrNotExist)
		}
		if int64(len(data)) > maxFileBytes {
			return &TooLargeError{Path: p, Limit: maxFileBytes}
		}
		if t.total += int64(len(data)); t.total > maxTotalBytes {
			return fmt.Errorf("more than %d bytes in all: split the folder over several GitSyncs", maxTotalBytes)
		}
		t.data[p] = data
	}
	return nil
}

// read returns the bytes of one resolved path.
func (t *tree) read(p string) ([]byte, error) {
	if err := t.load([]string{p}); err != nil {
		return nil, err
	}
	return t.data[p], nil
}

func isLFSPointer(data []byte) bool {
	return strings.HasPrefix(string(data[:min(len(data), 40)]), "version https://git-lfs.github.com/")
}
