// Package templatehash gives a pod template its identity: the first 10 hex
// digits of a SHA-256 over a version prefix and the canonical JSON of the
// template as it was declared.
//
// PURE: it never sees a Go struct of Kubernetes, so that a newer build of
// Pushback gives every template the same hash as an older one. It imports
// nothing of Pushback.
package templatehash

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
)

// Version is the version of the hash that new ReplicaSets are named with. A
// ReplicaSet keeps the version it was made with (annotation
// pushback.dev/template-hash-version).
const Version = "1"

// length of a hash in hex digits.
const length = 10

// UnknownVersionError is returned for a version that this build can't compute.
type UnknownVersionError struct{ Version string }

// Error names the version.
func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("template hash version %q is not known to this build: upgrade the controller", e.Version)
}

// Hash returns the hash of a pod template given as JSON, by the given version.
//
// Dropped before hashing: null values in objects, metadata.creationTimestamp and
// a top-level status, because tools print and servers drop them. The order of
// keys and the spelling of a number (1, 1.0, 1e0) don't count; the order of
// lists does.
func Hash(version string, template []byte) (string, error) {
	if version != Version {
		return "", &UnknownVersionError{Version: version}
	}
	canonical, err := Canonical(template)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "pushback.dev/template-hash/%s\n", version)
	sum.Write(canonical)
	return hex.EncodeToString(sum.Sum(nil))[:length], nil
}

// Canonical returns the canonical JSON that Hash is taken over: two templates
// are the same version if and only if these bytes are equal.
func Canonical(template []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(template))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("the pod template is not a JSON object: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("the pod template is followed by more data")
	}
	delete(root, "status")
	if metadata, ok := root["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
		if len(metadata) == 0 {
			delete(root, "metadata")
		}
	}
	var out bytes.Buffer
	if err := write(&out, root); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func write(out *bytes.Buffer, value any) error {
	switch v := value.(type) {
	case map[string]any:
		return writeObject(out, v)
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := write(out, item); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case json.Number:
		text, err := number(v)
		out.WriteString(text)
		return err
	default:
		return writeScalar(out, v)
	}
}

func writeObject(out *bytes.Buffer, object map[string]any) error {
	keys := make([]string, 0, len(object))
	for key, value := range object {
		if value != nil {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeScalar(out, key); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := write(out, object[key]); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// writeScalar writes strings, booleans and nulls in lists, without Go's escapes for HTML.
func writeScalar(out *bytes.Buffer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("the pod template holds a value that is not JSON: %w", err)
	}
	out.Truncate(out.Len() - 1) // the newline that Encode adds
	return nil
}

// number spells a number in one way: as the API server does, an integer that
// fits 64 bits stays one, and all else is a 64-bit float.
func number(n json.Number) (string, error) {
	if i, err := n.Int64(); err == nil {
		return strconv.FormatInt(i, 10), nil
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return "", fmt.Errorf("the pod template holds the number %s, which does not fit 64 bits", n)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10), nil
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}
