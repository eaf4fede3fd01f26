package fetch

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/pushback-dev/pushback/gitsync"
)

// objects are Git's objects in memory. go-git's storage is not safe even for
// several readers, so that every access goes through mu, and bytes are copied out.
type objects struct {
	mu      sync.Mutex
	storage *memory.Storage
	// oversize are blobs that the server was asked to leave out.
	oversize map[plumbing.Hash]bool
	// blobLimit in bytes, above which a file is not read.
	blobLimit int64
}

func newObjects(limit int64) *objects {
	return &objects{storage: memory.NewStorage(), oversize: map[plumbing.Hash]bool{}, blobLimit: limit}
}

// raw copies an object's bytes. A missing one is an error of class ErrCorrupt.
func (o *objects) raw(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	encoded, err := o.storage.EncodedObject(kind, hash)
	if err != nil {
		return nil, corrupt(fmt.Sprintf("%s %s", kind, hash), err)
	}
	reader, err := encoded.Reader()
	if err != nil {
		return nil, corrupt(fmt.Sprintf("%s %s", kind, hash), err)
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// blob copies the bytes of a file or the target of a link.
func (o *objects) blob(entry Entry) ([]byte, error) {
	hash := plumbing.NewHash(entry.Hash)
	size, state := o.state(hash)
	switch {
	case state == blobOversize || (state == blobHeld && size > o.blobLimit):
		return nil, unusable(entry.Path, fmt.Sprintf("it is larger than the limit of %d bytes", o.blobLimit))
	case state == blobMissing:
		return nil, &NotLoadedError{Path: entry.Path, blob: hash}
	}
	return o.raw(plumbing.BlobObject, hash)
}

type blobState int

const (
	blobHeld blobState = iota
	blobMissing
	blobOversize
)

func (o *objects) state(hash plumbing.Hash) (int64, blobState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.oversize[hash] {
		return 0, blobOversize
	}
	size, err := o.storage.EncodedObjectSize(hash)
	if err != nil {
		return 0, blobMissing
	}
	return size, blobHeld
}

// size in bytes of all objects, inflated.
func (o *objects) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var sum int64
	for _, object := range o.storage.Objects {
		sum += object.Size()
	}
	return sum
}

// entries parses a tree object; Path is the name alone.
func (o *objects) entries(hash plumbing.Hash) ([]Entry, error) {
	raw, err := o.raw(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for len(raw) > 0 {
		entry, rest, ok := cutEntry(raw)
		if !ok {
			return nil, corrupt("tree "+hash.String(), fmt.Errorf("malformed entry %d", len(entries)+1))
		}
		entries, raw = append(entries, entry), rest
	}
	return entries, nil
}

// cutEntry reads "<mode> <name>\0<20 bytes>" off the front of a tree object.
func cutEntry(raw []byte) (Entry, []byte, bool) {
	space := bytes.IndexByte(raw, ' ')
	null := bytes.IndexByte(raw, 0)
	if space < 0 || null < space || len(raw) < null+1+hashSize {
		return Entry{}, nil, false
	}
	var hash plumbing.Hash
	copy(hash[:], raw[null+1:])
	mode := Mode(bytes.TrimLeft(raw[:space], "0"))
	name := string(raw[space+1 : null])
	if name == "" || name == "." || name == ".." || bytes.IndexByte(raw[space+1:null], '/') >= 0 {
		return Entry{}, nil, false
	}
	return Entry{Path: name, Mode: mode, Hash: hash.String()}, raw[null+1+hashSize:], true
}

// hashSize of a SHA-1 in bytes.
const hashSize = 20

func corrupt(what string, err error) error {
	return &gitsync.Error{Class: gitsync.ErrCorrupt, Op: "read " + what, Words: gitsync.Scrub(err.Error())}
}
