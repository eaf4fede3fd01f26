package render

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/gitsync"
)

// value is one document of a file, decoded.
type value struct {
	object   map[string]any
	document int
	line     int
}

// isManifest is true for the names that are read in a plain folder.
func isManifest(p string) bool {
	switch path.Ext(p) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// decodeFile decodes every document of a file. Empty ones are left out.
func decodeFile(p string, data []byte) ([]value, gitsync.ManifestErrors) {
	if isLFSPointer(data) {
		return nil, gitsync.ManifestErrors{{File: p, Problem: "the file " + errLFS.Error()}}
	}
	if path.Ext(p) == ".json" {
		return decodeJSON(p, data)
	}
	var out []value
	var errs gitsync.ManifestErrors
	count := 0
	for _, doc := range documents(data) {
		decoded, faults := decodeYAML(doc)
		if decoded == nil && len(faults) == 0 {
			continue
		}
		count++
		errs = append(errs, asErrors(p, count, faults)...)
		if len(faults) == 0 {
			object, ok := decoded.(map[string]any)
			if !ok {
				errs = append(errs, &gitsync.ManifestError{File: p, Document: count, Line: doc.line, Problem: "a document must be a mapping with apiVersion and kind"})
				continue
			}
			out = append(out, value{object: object, document: count, line: doc.line})
		}
	}
	return out, errs
}

func decodeJSON(p string, data []byte) ([]value, gitsync.ManifestErrors) {
	docs, faults := jsonDocuments(data)
	if len(faults) > 0 {
		return nil, asErrors(p, len(docs)+1, faults)
	}
	var out []value
	var errs gitsync.ManifestErrors
	for i, doc := range docs {
		var object map[string]any
		if err := utiljson.Unmarshal(doc.text, &object); err != nil {
			errs = append(errs, &gitsync.ManifestError{File: p, Document: i + 1, Line: doc.line, Problem: err.Error()})
			continue
		}
		if object != nil {
			out = append(out, value{object: object, document: i + 1, line: doc.line})
		}
	}
	return out, errs
}

// inspectFile returns what is wrong with the YAML or JSON of a file, whatever it holds.
func inspectFile(p string, data []byte) gitsync.ManifestErrors {
	if path.Ext(p) == ".json" {
		docs, faults := jsonDocuments(data)
		return asErrors(p, len(docs)+1, faults)
	}
	var errs gitsync.ManifestErrors
	count := 0
	for _, doc := range documents(data) {
		decoded, faults := decodeYAML(doc)
		if decoded != nil || len(faults) > 0 {
			count++
			errs = append(errs, asErrors(p, count, faults)...)
		}
	}
	return errs
}

func asErrors(p string, document int, faults []fault) gitsync.ManifestErrors {
	var errs gitsync.ManifestErrors
	for _, f := range faults {
		errs = append(errs, &gitsync.ManifestError{File: p, Document: document, Line: f.line, Field: f.field, Problem: f.problem})
	}
	return errs
}

// decodeYAML decodes one document as kubectl would, after it was inspected. nil
// means that the document is empty.
func decodeYAML(doc document) (any, []fault) {
	base := doc.line - 1
	node, broken := parseNode(doc.text, base)
	if broken != nil {
		return nil, []fault{*broken}
	}
	if node == nil || node.Tag == "!!null" {
		return nil, nil
	}
	if faults := inspect(node, base); len(faults) > 0 {
		return nil, faults
	}
	text, err := yaml.YAMLToJSONStrict(doc.text)
	if err != nil {
		return nil, []fault{*yamlFault(err, base)}
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return nil, nil
	}
	var decoded any
	if err := utiljson.Unmarshal(text, &decoded); err != nil {
		return nil, []fault{{line: doc.line, problem: err.Error()}}
	}
	return decoded, checkStrings(node, decoded, base)
}

// maxListDepth bounds Lists inside Lists.
const maxListDepth = 10

// flatten makes objects of a document: one, or the items of a List.
func flatten(p string, v value) ([]gitsync.Object, gitsync.ManifestErrors) {
	f := flattener{file: p, value: v}
	f.add(v.object, "", 0)
	return f.objects, f.errs
}

type flattener struct {
	file    string
	value   value
	objects []gitsync.Object
	errs    gitsync.ManifestErrors
}

// add takes one object, or the items of a List. at names the item for people,
// from 1: "item 3: ".
func (f *flattener) add(object map[string]any, at string, depth int) {
	u := &unstructured.Unstructured{Object: object}
	out := gitsync.Object{Unstructured: u, File: f.file, Document: f.value.document, Line: f.value.line, Files: []string{f.file}}
	kind, _, _ := unstructured.NestedString(object, "kind")
	apiVersion, _, _ := unstructured.NestedString(object, "apiVersion")
	items, hasItems := object["items"]
	switch {
	case kind == "":
		f.fail("kind", at+"kind missing")
	case apiVersion == "":
		f.fail("apiVersion", at+"apiVersion missing")
	case strings.HasSuffix(kind, "List") && (hasItems || kind == "List"):
		f.addItems(items, at, depth)
	case u.GetName() == "" && u.GetGenerateName() == "":
		f.fail("metadata.name", at+kind+" has no name")
	default:
		if _, encrypted := object["sops"]; encrypted {
			f.errs = append(f.errs, out.Errorf("sops", "%sthe document is encrypted with SOPS, which is not built yet: keep secrets out of Git or create them in the cluster", at))
			return
		}
		f.objects = append(f.objects, out)
	}
}

func (f *flattener) addItems(items any, at string, depth int) {
	if depth >= maxListDepth {
		f.fail("items", fmt.Sprintf("%sLists nest deeper than %d", at, maxListDepth))
		return
	}
	if items == nil {
		return
	}
	list, ok := items.([]any)
	if !ok {
		f.fail("items", at+"items must be a list")
		return
	}
	for i, item := range list {
		name := fmt.Sprintf("%sitem %d: ", at, i+1)
		object, ok := item.(map[string]any)
		if !ok {
			f.fail("items", name+"must be an object")
			continue
		}
		f.add(object, name, depth+1)
	}
}

func (f *flattener) fail(field, problem string) {
	f.errs = append(f.errs, &gitsync.ManifestError{File: f.file, Document: f.value.document, Line: f.value.line, Field: field, Problem: problem})
}
