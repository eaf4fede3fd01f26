package fetch

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pushback-dev/pushback/gitsync"
)

// Mode of an entry of a tree, in octal as Git writes it.
type Mode string

// The modes that Git knows.
const (
	ModeFile       Mode = "100644"
	ModeExecutable Mode = "100755"
	ModeSymlink    Mode = "120000"
	ModeSubmodule  Mode = "160000"
	ModeDir        Mode = "40000"
)

// maxLinks bounds the symbolic links on the way to a file, as Linux does.
const maxLinks = 40

// Identity is a name and an address in a commit.
type Identity struct{ Name, Email string }

// Tree is one commit and its files: a snapshot that never changes. It may be
// used by several goroutines at once, and outlives the Store it came from.
type Tree struct {
	// Commit and Parent are 40 hex digits; Parent is the first one, empty for a root commit.
	Commit, Parent string
	// Subject is the first line of Message.
	Subject, Message string
	// Author of the commit.
	Author Identity
	// When is the committer's date.
	When time.Time

	root    plumbing.Hash
	objects *objects
	// merge is true for a commit with several parents.
	merge bool
}

// Entry is a file, folder, link or submodule in a tree.
type Entry struct {
	// Path in the repository, without a leading slash.
	Path string
	Mode Mode
	// Hash of the blob or tree, 40 hex digits: equal bytes have equal hashes.
	Hash string
}

// NotLoadedError says that a file exists but was left on the server: fetch its
// folder with Store.Load.
type NotLoadedError struct {
	Path string
	blob plumbing.Hash
}

// Error names the file.
func (e *NotLoadedError) Error() string { return e.Path + " was not downloaded" }

// ReadFile returns a copy of a file's bytes as Git has them, and its mode.
// Links that stay in the repository are followed. It does no I/O.
//
// Errors: *NotLoadedError; class ErrPathNotFound when there is no such file;
// class ErrUnusable for a folder, a submodule, a pointer of Git LFS, a file
// over the limit, and a link that is dangling, absolute, in a loop or leaves
// the repository.
func (t *Tree) ReadFile(name string) ([]byte, Mode, error) {
	entry, err := t.Stat(name)
	if err != nil {
		return nil, "", err
	}
	if entry.Mode == ModeDir {
		return nil, "", unusable(name, "it is a folder")
	}
	data, err := t.objects.blob(entry)
	if err != nil {
		return nil, "", err
	}
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) {
		return nil, "", unusable(name, "it is a pointer of Git LFS: keep manifests in Git itself")
	}
	return data, entry.Mode, nil
}

// Stat returns the entry at the end of all links: its Path is the real one,
// which is what an edit goes to. The empty name is the root.
func (t *Tree) Stat(name string) (Entry, error) {
	links := 0
	return t.resolve(clean(name), clean(name), &links)
}

// List returns the entries of a folder in Git's order; their Paths begin with
// dir as given. Links and submodules are listed, not followed.
func (t *Tree) List(dir string) ([]Entry, error) {
	folder, err := t.Stat(dir)
	if err != nil {
		return nil, err
	}
	if folder.Mode != ModeDir {
		return nil, unusable(dir, "it is a file")
	}
	entries, err := t.objects.entries(plumbing.NewHash(folder.Hash))
	if err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i].Path = path.Join(clean(dir), entries[i].Path)
	}
	return entries, nil
}

// Walk calls fn for every file, link and submodule under a folder, or for the
// file itself, in Git's order. Links are not followed: Stat finds where they
// lead, so that what is reached twice can be read once.
func (t *Tree) Walk(prefix string, fn func(Entry) error) error {
	start, err := t.Stat(prefix)
	if err != nil {
		return err
	}
	if start.Mode != ModeDir {
		return fn(start)
	}
	entries, err := t.List(prefix)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Mode == ModeDir {
			err = t.Walk(entry.Path, fn)
		} else {
			err = fn(entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve walks from the root to name; asked is what to call it in errors.
func (t *Tree) resolve(name, asked string, links *int) (Entry, error) {
	at := Entry{Mode: ModeDir, Hash: t.root.String()}
	for name != "" {
		part, rest, _ := strings.Cut(name, "/")
		entries, err := t.objects.entries(plumbing.NewHash(at.Hash))
		if err != nil {
			return Entry{}, err
		}
		next, ok := find(entries, part)
		if !ok {
			return Entry{}, &gitsync.Error{Class: gitsync.ErrPathNotFound, Op: "read " + asked,
				Words: fmt.Sprintf("commit %s has no %s", gitsync.Short(t.Commit), path.Join(at.Path, part))}
		}
		next.Path = path.Join(at.Path, part)
		switch {
		case next.Mode == ModeSubmodule:
			return t.submodule(next, rest, asked)
		case next.Mode == ModeSymlink:
			return t.follow(next, rest, asked, links)
		case next.Mode != ModeDir && rest != "":
			return Entry{}, &gitsync.Error{Class: gitsync.ErrPathNotFound, Op: "read " + asked,
				Words: next.Path + " is a file, not a folder"}
		}
		at, name = next, rest
	}
	return at, nil
}

func (t *Tree) submodule(at Entry, rest, asked string) (Entry, error) {
	if rest == "" && at.Path == asked {
		return Entry{}, unusable(asked, "it is a submodule: put the files into this repository")
	}
	return Entry{}, unusable(asked, "it crosses the submodule "+at.Path+": put the files into this repository")
}

// follow goes on at the target of a link.
func (t *Tree) follow(link Entry, rest, asked string, links *int) (Entry, error) {
	if *links++; *links > maxLinks {
		return Entry{}, unusable(asked, "the link "+link.Path+" is in a loop")
	}
	target, err := t.objects.blob(link)
	if err != nil {
		return Entry{}, err
	}
	to := string(target)
	joined := path.Join(path.Dir(link.Path), to)
	if path.IsAbs(to) || joined == ".." || strings.HasPrefix(joined, "../") {
		return Entry{}, unusable(asked, "the link "+link.Path+" leaves the repository")
	}
	entry, err := t.resolve(clean(path.Join(joined, rest)), asked, links)
	if gitsync.ClassOf(err) == gitsync.ErrPathNotFound && err != nil {
		return Entry{}, unusable(asked, "the link "+link.Path+" leads nowhere: "+joined+" does not exist")
	}
	return entry, err
}

func find(entries []Entry, name string) (Entry, bool) {
	for _, entry := range entries {
		if entry.Path == name {
			return entry, true
		}
	}
	return Entry{}, false
}

// clean makes a path relative to the root of the repository; "" is the root.
func clean(name string) string { return path.Clean("/" + name)[1:] }

func unusable(name, reason string) error {
	return &gitsync.Error{Class: gitsync.ErrUnusable, Op: "read " + clean(name), Words: gitsync.Scrub(reason)}
}

// tree reads the commit object.
func (o *objects) tree(hash plumbing.Hash) (*Tree, error) {
	raw, err := o.raw(plumbing.CommitObject, hash)
	if err != nil {
		return nil, err
	}
	encoded := &plumbing.MemoryObject{}
	encoded.SetType(plumbing.CommitObject)
	if _, err := encoded.Write(raw); err != nil {
		return nil, err
	}
	commit := &object.Commit{}
	if err := commit.Decode(encoded); err != nil {
		return nil, corrupt("commit "+hash.String(), err)
	}
	t := &Tree{
		Commit: hash.String(), Message: commit.Message, When: commit.Committer.When.UTC(),
		Author: Identity{Name: commit.Author.Name, Email: commit.Author.Email},
		root:   commit.TreeHash, objects: o, merge: len(commit.ParentHashes) > 1,
	}
	t.Subject = Message{Text: commit.Message}.Subject()
	if len(commit.ParentHashes) > 0 {
		t.Parent = commit.ParentHashes[0].String()
	}
	return t, nil
}
