package revert_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pushback-dev/pushback/gitsync/revert"
	"github.com/pushback-dev/pushback/templatehash"
)

// plain renders the YAML and JSON files of a map, as a folder without a
// kustomization is rendered.
func plain(name string, head map[string][]byte) revert.Render {
	return revert.Render{Name: name, Objects: func(edits map[string][]byte) ([]revert.Object, error) {
		var all []revert.Object
		for _, file := range keys(head) {
			data := head[file]
			if edited, ok := edits[file]; ok {
				data = edited
			}
			objects, err := decode(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, objects...)
		}
		return all, nil
	}}
}

func keys(m map[string][]byte) []string {
	var all []string
	for key := range m {
		all = append(all, key)
	}
	sort.Strings(all)
	return all
}

// decode reads all documents of a file, and the items of Lists.
func decode(data []byte) ([]revert.Object, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	var all []revert.Object
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		object, ok := value.(map[string]any)
		if !ok {
			continue
		}
		items, isList := object["items"].([]any)
		if !isList {
			items = []any{object}
		}
		for _, item := range items {
			o, err := toObject(item)
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	}
}

func toObject(value any) (revert.Object, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return revert.Object{}, err
	}
	var meta struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
		Spec             struct{ Template json.RawMessage }
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return revert.Object{}, err
	}
	o := revert.Object{JSON: raw, Identity: revert.Identity{
		APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Metadata.Namespace, Name: meta.Metadata.Name,
	}}
	if meta.Kind == "Rollout" && len(meta.Spec.Template) > 0 {
		o.TemplateHash, err = templatehash.Hash(templatehash.Version, meta.Spec.Template)
	}
	return o, err
}

var web = revert.Identity{APIVersion: "pushback.dev/v1alpha1", Kind: "Rollout", Namespace: "shop", Name: "web"}

// hashIn is the template hash of the Rollout web in a render.
func hashIn(t *testing.T, r revert.Render) string {
	t.Helper()
	objects, err := r.Objects(nil)
	if err != nil {
		t.Fatalf("render %s: %v", r.Name, err)
	}
	for _, o := range objects {
		if o.Identity == web {
			return o.TemplateHash
		}
	}
	t.Fatalf("%s renders no %s", r.Name, web)
	return ""
}

func files(pairs ...string) map[string][]byte {
	out := map[string][]byte{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = []byte(pairs[i+1])
	}
	return out
}

// inputs are what a controller would hand over after the head's template was
// rejected and the stored files' was stable.
func inputs(t *testing.T, stored, head map[string][]byte, render func(string, map[string][]byte) revert.Render) revert.In {
	t.Helper()
	return revert.In{
		Rollout: web, Stored: stored, Head: head, Own: render("own", head),
		Stable: hashIn(t, render("stored", stored)), Rejected: hashIn(t, render("own", head)),
	}
}

func mustEdit(t *testing.T, outcome revert.Outcome) map[string][]byte {
	t.Helper()
	edited, ok := outcome.(*revert.Edited)
	if !ok {
		t.Fatalf("want an edit, got %T %v", outcome, outcome)
	}
	return edited.Edits
}

func mustRefuse(t *testing.T, outcome revert.Outcome, words ...string) *revert.Refused {
	t.Helper()
	refused, ok := outcome.(*revert.Refused)
	if !ok {
		t.Fatalf("want a refusal, got %T %+v", outcome, outcome)
	}
	for _, word := range words {
		if !strings.Contains(refused.Error(), word) {
			t.Errorf("the refusal %q does not name %q", refused.Error(), word)
		}
	}
	return refused
}
