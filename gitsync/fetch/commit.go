package fetch

import (
	"fmt"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/pushback-dev/pushback/gitsync"
)

// commit is a new commit and the objects that the parent does not have.
type commit struct {
	hash    plumbing.Hash
	objects []plumbing.Hash
	storage *memory.Storage
}

// makeCommit changes the blobs of the edits and nothing else: every tree on the
// way is the parent's with one hash replaced, byte for byte. Without a change it
// returns nil.
func makeCommit(base *Tree, edits map[string][]byte, spec CommitSpec) (*commit, error) {
	made := &commit{storage: memory.NewStorage()}
	blobs := map[string]plumbing.Hash{}
	for _, name := range sortedKeys(edits) {
		at, err := base.Stat(name)
		if err != nil {
			return nil, editError(name, err)
		}
		if at.Mode != ModeFile && at.Mode != ModeExecutable && at.Mode != "100664" {
			return nil, unusable(name, "only a file can be edited")
		}
		hash := plumbing.ComputeHash(plumbing.BlobObject, edits[name])
		if other, twice := blobs[at.Path]; twice && other != hash {
			return nil, unusable(name, "two edits go to the same file, "+at.Path)
		}
		if hash.String() == at.Hash {
			continue
		}
		blobs[at.Path] = hash
		if err := made.add(plumbing.BlobObject, edits[name]); err != nil {
			return nil, err
		}
	}
	if len(blobs) == 0 {
		return nil, nil
	}
	root, err := made.rewrite(base, base.root, "", blobs)
	if err != nil {
		return nil, err
	}
	return made, made.encode(base, root, spec)
}

func editError(name string, err error) error {
	if gitsync.ClassOf(err) == gitsync.ErrPathNotFound {
		return unusable(name, "it does not exist: an edit creates no file")
	}
	return err
}

// rewrite makes the tree at dir with the new blobs below it, from the leaves up.
func (c *commit) rewrite(base *Tree, hash plumbing.Hash, dir string, blobs map[string]plumbing.Hash) (plumbing.Hash, error) {
	raw, err := base.objects.raw(plumbing.TreeObject, hash)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	changed := append([]byte(nil), raw...)
	for offset := 0; offset < len(raw); {
		entry, rest, ok := cutEntry(raw[offset:])
		if !ok {
			return plumbing.ZeroHash, corrupt("tree "+hash.String(), fmt.Errorf("malformed entry"))
		}
		offset = len(raw) - len(rest)
		name := clean(dir + "/" + entry.Path)
		replacement, found := blobs[name]
		if entry.Mode == ModeDir && hasBelow(blobs, name) {
			if replacement, err = c.rewrite(base, plumbing.NewHash(entry.Hash), name, blobs); err != nil {
				return plumbing.ZeroHash, err
			}
			found = true
		}
		if found {
			copy(changed[offset-hashSize:offset], replacement[:])
		}
	}
	return plumbing.ComputeHash(plumbing.TreeObject, changed), c.add(plumbing.TreeObject, changed)
}

func hasBelow(blobs map[string]plumbing.Hash, dir string) bool {
	for name := range blobs {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

func (c *commit) add(kind plumbing.ObjectType, data []byte) error {
	encoded := &plumbing.MemoryObject{}
	encoded.SetType(kind)
	if _, err := encoded.Write(data); err != nil {
		return err
	}
	return c.keep(encoded)
}

func (c *commit) keep(encoded plumbing.EncodedObject) error {
	if c.storage.HasEncodedObject(encoded.Hash()) == nil {
		return nil
	}
	hash, err := c.storage.SetEncodedObject(encoded)
	c.objects = append(c.objects, hash)
	return err
}

// encode writes the commit object.
func (c *commit) encode(base *Tree, root plumbing.Hash, spec CommitSpec) error {
	author, err := signature(spec.Author, spec)
	if err != nil {
		return err
	}
	committer, err := signature(spec.Committer, spec)
	if err != nil {
		return err
	}
	encoded := &plumbing.MemoryObject{}
	o := &object.Commit{
		Author: author, Committer: committer, TreeHash: root,
		ParentHashes: []plumbing.Hash{plumbing.NewHash(base.Commit)},
		Message:      strings.TrimRight(spec.Message, "\n") + "\n",
	}
	if err := o.Encode(encoded); err != nil {
		return err
	}
	c.hash = encoded.Hash()
	return c.keep(encoded)
}

// signature refuses names that would break the header of a commit.
func signature(who Identity, spec CommitSpec) (object.Signature, error) {
	if who.Name == "" || who.Email == "" || strings.ContainsAny(who.Name+who.Email, "<>\n\r\x00") {
		return object.Signature{}, &gitsync.Error{Class: gitsync.ErrUnusable, Op: "commit",
			Words: fmt.Sprintf("%q <%q> is not a name and an address: neither may be empty or hold <, > or a line break", who.Name, who.Email)}
	}
	return object.Signature{Name: who.Name, Email: who.Email, When: spec.When.UTC().Truncate(1e9)}, nil
}

func sortedKeys(edits map[string][]byte) []string {
	keys := make([]string, 0, len(edits))
	for key := range edits {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
