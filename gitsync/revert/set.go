package revert

import (
	"errors"
	"sort"
	"strings"

	"github.com/pushback-dev/pushback/gitsync/revert/yamledit"
)

// set is some changes that do not overlap.
type set []candidate

// join unites sets; of changes that overlap, the first stays.
func join(sets ...set) set {
	var out set
	for _, s := range sets {
		for _, c := range s {
			if !out.overlaps(c) {
				out = append(out, c)
			}
		}
	}
	return out
}

func (s set) overlaps(c candidate) bool {
	for _, other := range s {
		if other.file == c.file && (other.whole != nil || c.whole != nil || other.change.Overlaps(c.change)) {
			return true
		}
	}
	return false
}

// without leaves out the entries from i up to j.
func (s set) without(i, j int) set {
	return append(append(set(nil), s[:i]...), s[j:]...)
}

// key tells sets apart.
func (s set) key() string {
	keys := make([]string, len(s))
	for i, c := range s {
		keys[i] = c.key()
	}
	sort.Strings(keys)
	return strings.Join(keys, "\x01")
}

// edits makes the new bytes of every file in the set, each proved by itself.
func (s set) edits() (map[string][]byte, error) {
	edits := map[string][]byte{}
	changes := map[string][]yamledit.Change{}
	sources := map[string]*yamledit.File{}
	for _, c := range s {
		if c.whole != nil {
			edits[c.file] = c.whole
			continue
		}
		changes[c.file] = append(changes[c.file], c.change)
		sources[c.file] = c.source
	}
	for _, file := range sortedKeys(changes) {
		edited, err := sources[file].Apply(changes[file])
		if err != nil {
			return nil, refuseFile(file, err)
		}
		edits[file] = edited
	}
	return edits, nil
}

func asRefused(err error, r **Refused) bool { return errors.As(err, r) }
