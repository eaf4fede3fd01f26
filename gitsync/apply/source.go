package apply

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/templatehash"
)

// maxSubject is how many characters of a commit's subject are kept.
const maxSubject = 100

// templateOf returns the pod template that a Rollout declares and its hash. The
// hash is empty when it declares none.
func templateOf(rollout *unstructured.Unstructured) (map[string]any, string, error) {
	template, found, err := unstructured.NestedMap(rollout.Object, "spec", "template")
	if err != nil || !found {
		return nil, "", err
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, "", err
	}
	hash, err := templatehash.Hash(templatehash.Version, text)
	return template, hash, err
}

// sourceOf is the value of the source annotation of a declared Rollout. It is
// the live one, byte for byte, unless the template's hash has changed, the
// Rollout has come from another GitSync, or a new commit's trailer lifts the
// hold on a hash of this Rollout: then the commit is noted as the one that says so.
func sourceOf(in In, o *object, live *unstructured.Unstructured, hash string) (string, error) {
	before, text := liveSource(live)
	retry := relevantRetries(in.Commit.Retry, hash, live)
	own := in.GitSync.String()
	revision := in.Commit.Revision.String()
	if before.Hash == hash && before.GitSync == own && (len(retry) == 0 || before.Revision == revision) {
		return text, nil
	}
	source := v1alpha1.Source{
		Hash: hash, Revision: revision, Subject: shorten(in.Commit.Subject),
		Retry: retry, GitSync: own, File: o.File,
		Irreversible: slices.Contains(in.Commit.Irreversible, o.declared.GetName()) ||
			slices.Contains(in.Commit.Irreversible, o.declared.GetNamespace()+"/"+o.declared.GetName()),
	}
	if before.Hash == hash && len(retry) == 0 {
		// Only the GitSync has changed: the commit that declared the template hasn't.
		source.Revision, source.Subject, source.Retry, source.Irreversible = before.Revision, before.Subject, before.Retry, before.Irreversible
	}
	out, err := json.Marshal(source)
	return string(out), err
}

func liveSource(live *unstructured.Unstructured) (v1alpha1.Source, string) {
	var source v1alpha1.Source
	if live == nil {
		return source, ""
	}
	text := live.GetAnnotations()[v1alpha1.SourceAnnotation]
	if json.Unmarshal([]byte(text), &source) != nil {
		return v1alpha1.Source{}, ""
	}
	return source, text
}

// relevantRetries are the hashes of trailers that are this Rollout's: the one
// that is declared, and those that it has rejected.
func relevantRetries(trailers []string, hash string, live *unstructured.Unstructured) []string {
	known := []string{hash}
	if live != nil {
		rejected, _, _ := unstructured.NestedSlice(live.Object, "status", "rejected")
		for _, entry := range rejected {
			if version, ok := entry.(map[string]any); ok {
				known = append(known, text(version["hash"]))
			}
		}
	}
	var out []string
	for _, retry := range trailers {
		if slices.Contains(known, retry) && !slices.Contains(out, retry) {
			out = append(out, retry)
		}
	}
	return out
}

func shorten(subject string) string {
	runes := []rune(subject)
	if len(runes) > maxSubject {
		return string(runes[:maxSubject-1]) + "…"
	}
	return subject
}

// maxSource is the most bytes of compressed files that are kept for a template.
const maxSource = 256 << 10

// maxUnpacked is the most bytes that kept files may unpack to.
const maxUnpacked = 128 << 20

// StoredSource is the data of a template's ControllerRevision. Its fields are in
// the order of their names: the API server compares the data of a
// ControllerRevision byte for byte, and sorts them with every patch. In another
// order it would take no patch of the metadata, such as the garbage collector's
// when a Rollout is deleted without its pods.
type StoredSource struct {
	// Files are gzipped JSON, in base64: a list of File. Empty when TooLarge.
	Files string `json:"files,omitempty"`
	// Revision that declared the template first.
	Revision string `json:"revision,omitempty"`
	// TooLarge is true when the files are over 256 KiB compressed: a revert of
	// another version to this one must be made by hand.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// ErrSourceTooLarge says that the files of a template were too large to keep.
var ErrSourceTooLarge = errors.New("the files of this version were too large to keep (over 256 KiB compressed)")

// PackSource makes the data of a ControllerRevision.
func PackSource(revision gitsync.Revision, files []File) (StoredSource, error) {
	out := StoredSource{Revision: revision.String()}
	text, err := json.Marshal(files)
	if err != nil {
		return out, err
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(text); err != nil {
		return out, err
	}
	if err := writer.Close(); err != nil {
		return out, err
	}
	if base64.StdEncoding.EncodedLen(packed.Len()) > maxSource {
		out.TooLarge = true
		return out, nil
	}
	out.Files = base64.StdEncoding.EncodeToString(packed.Bytes())
	return out, nil
}

// UnpackSource returns the files that PackSource kept. Errors: ErrSourceTooLarge
// when they were not kept, and others for data that nobody of ours wrote.
func UnpackSource(data []byte) ([]File, error) {
	var stored StoredSource
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("the kept source can't be read: %w", err)
	}
	if stored.TooLarge {
		return nil, ErrSourceTooLarge
	}
	packed, err := base64.StdEncoding.DecodeString(stored.Files)
	if err != nil {
		return nil, fmt.Errorf("the kept source can't be read: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the kept source can't be read: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("the kept source can't be read: %w", err)
	}
	var files []File
	if err := json.Unmarshal(text, &files); err != nil {
		return nil, fmt.Errorf("the kept source can't be read: %w", err)
	}
	return files, nil
}
