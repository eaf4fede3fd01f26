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
)

// maxSubject is how many characters of a commit's subject are kept.
const maxSubject = 100

// sourceOf is the value of the source annotation of a declared Rollout. It is
// the live one, byte for byte, unless the template's hash has changed, the
// Rollout has come from another GitSync, or a new commit's trailer lifts the
// hold on a hash of this Rollout: then that commit is noted as the one that says so.
//
// A change of the template is irreversible when any commit since the last whole
// apply says so: which of them has changed the template isn't known.
func sourceOf(in In, o *object, live *unstructured.Unstructured, declared version) (string, error) {
	hash := declared.hash
	before, text := liveSource(live)
	found := in.retries(hash, live)
	retries := slices.DeleteFunc(slices.Clone(found), before.noted)
	own := in.GitSync.String()
	sameHolder := (declared.workload != nil) == (len(before.Template) > 0)
	if before.Hash == hash && before.GitSync == own && len(retries) == 0 && sameHolder {
		return text, nil
	}
	source := v1alpha1.Source{
		Hash: hash, Revision: in.Commit.Revision.String(), Subject: shorten(in.Commit.Subject),
		Irreversible: in.irreversible(o.declared.GetNamespace(), o.declared.GetName()),
	}
	if before.Hash == hash {
		source = before.Source // only the GitSync has changed, or somebody wants another try
		source.Irreversible = before.Irreversible || len(retries) > 0 && in.irreversible(o.declared.GetNamespace(), o.declared.GetName())
		if len(retries) > 0 {
			source.Revision, source.Subject = retries[0].commit.Revision.String(), shorten(retries[0].commit.Subject)
		}
	}
	if before.Hash != hash || len(retries) > 0 {
		source.Retry, source.RetryCommits = hashesOf(retries), commitsOf(found)
	}
	source.GitSync, source.File, source.Template = own, declared.declaredIn(o), nil
	if declared.workload != nil {
		source.Template = declared.raw
	}
	out, err := json.Marshal(source)
	return string(out), err
}

// noted is the source of the live Rollout.
type noted struct{ v1alpha1.Source }

// noted is true for a trailer that the live Rollout was told of before.
func (n noted) noted(r retry) bool {
	return slices.Contains(n.RetryCommits, r.commit.Revision.Hash) || slices.Contains(n.Retry, r.hash) && n.Revision == r.commit.Revision.String()
}

func liveSource(live *unstructured.Unstructured) (noted, string) {
	var source noted
	if live == nil {
		return source, ""
	}
	text := live.GetAnnotations()[v1alpha1.SourceAnnotation]
	if json.Unmarshal([]byte(text), &source.Source) != nil {
		return noted{}, ""
	}
	return source, text
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
	// Subject of that commit, at most 100 characters.
	Subject string `json:"subject,omitempty"`
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
