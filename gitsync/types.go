package gitsync

import (
	"strings"
)

// hashLength of a SHA-1 in hex digits.
const hashLength = 40

// Revision is a commit and the branch that it was the head of. It is written
// as Flux writes it: main@sha1:<40 hex digits>. The zero value means none.
type Revision struct {
	// Branch without refs/heads/, such as main or team/web.
	Branch string
	// Hash of the commit, 40 lower-case hex digits.
	Hash string
}

// String writes the revision, or nothing for the zero value.
func (r Revision) String() string {
	if r.IsZero() {
		return ""
	}
	return r.Branch + "@sha1:" + r.Hash
}

// HashOf is the hash in what String writes; empty when there is none.
func HashOf(revision string) string {
	at := strings.LastIndex(revision, "@sha1:")
	if at < 0 {
		return ""
	}
	return revision[at+len("@sha1:"):]
}

// IsZero reports whether r names no commit.
func (r Revision) IsZero() bool { return r.Hash == "" }

// Short is the first 7 digits of the hash, for people.
func (r Revision) Short() string { return Short(r.Hash) }

// Short returns the first 7 digits of a commit's hash.
func Short(hash string) string { return hash[:min(7, len(hash))] }

// IsHash reports whether text is a SHA-1 in 40 lower-case hex digits.
func IsHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, "0123456789abcdef") == ""
}
