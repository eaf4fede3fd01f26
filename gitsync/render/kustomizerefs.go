package render

import (
	"fmt"
	"sort"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// references lists every path that a kustomization names.
func references(k types.Kustomization) []reference {
	var out []reference
	each := func(field string, paths []string, template reference) {
		for i, p := range paths {
			template.path, template.field = p, fmt.Sprintf("%s[%d]", field, i)
			out = append(out, template)
		}
	}
	each("resources", k.Resources, reference{folder: true, manifest: true})
	//lint:ignore SA1019 kustomize still reads it, and what it reads must be scanned
	each("bases", k.Bases, reference{folder: true, manifest: true})
	each("components", k.Components, reference{folder: true})
	each("crds", k.Crds, reference{})
	each("configurations", k.Configurations, reference{manifest: true})
	out = append(out, plugins("generators", k.Generators)...)
	out = append(out, plugins("transformers", k.Transformers)...)
	out = append(out, plugins("validators", k.Validators)...)
	if p := k.OpenAPI["path"]; p != "" {
		out = append(out, reference{path: p, field: "openapi.path"})
	}
	out = append(out, patches(k)...)
	for i, r := range k.Replacements {
		if r.Path != "" {
			out = append(out, reference{path: r.Path, field: fmt.Sprintf("replacements[%d].path", i), manifest: true})
		}
	}
	for i, g := range k.ConfigMapGenerator {
		out = append(out, generated(fmt.Sprintf("configMapGenerator[%d]", i), g.KvPairSources)...)
	}
	for i, g := range k.SecretGenerator {
		out = append(out, generated(fmt.Sprintf("secretGenerator[%d]", i), g.KvPairSources)...)
	}
	return out
}

func patches(k types.Kustomization) []reference {
	var out []reference
	//lint:ignore SA1019 kustomize still reads it, and what it reads must be scanned
	for i, p := range k.PatchesStrategicMerge {
		// An entry is a path, or the patch itself.
		if text := string(p); !strings.Contains(text, "\n") && !strings.Contains(text, ": ") {
			out = append(out, reference{path: text, field: fmt.Sprintf("patchesStrategicMerge[%d]", i), manifest: true})
		}
	}
	//lint:ignore SA1019 kustomize still reads it, and what it reads must be scanned
	for i, p := range k.PatchesJson6902 {
		if p.Path != "" {
			out = append(out, reference{path: p.Path, field: fmt.Sprintf("patchesJson6902[%d].path", i), manifest: true})
		}
	}
	for i, p := range k.Patches {
		if p.Path != "" {
			out = append(out, reference{path: p.Path, field: fmt.Sprintf("patches[%d].path", i), manifest: true})
		}
	}
	return out
}

// generated lists the files of a ConfigMap or Secret generator: "name" or "key=name".
func generated(field string, sources types.KvPairSources) []reference {
	var out []reference
	add := func(kind string, entries []string, keyed bool) {
		for i, p := range entries {
			if _, name, found := strings.Cut(p, "="); found && keyed {
				p = name
			}
			out = append(out, reference{path: p, field: fmt.Sprintf("%s.%s[%d]", field, kind, i)})
		}
	}
	add("files", sources.FileSources, true)
	add("envs", sources.EnvSources, false)
	if sources.EnvSource != "" {
		out = append(out, reference{path: sources.EnvSource, field: field + ".env"})
	}
	return out
}

// plugins lists the files and folders that configure generators, transformers or
// validators; an entry that holds the configuration itself names no file, but
// may hold paths.
func plugins(field string, entries []string) []reference {
	var out []reference
	for i, entry := range entries {
		name := fmt.Sprintf("%s[%d]", field, i)
		if !strings.Contains(entry, "\n") {
			out = append(out, reference{path: entry, field: name, folder: true, manifest: true, plugin: true})
			continue
		}
		var object map[string]any
		if yaml.Unmarshal([]byte(entry), &object) == nil {
			collectPaths(object, name, &out)
		}
	}
	return out
}

// pathKeys are the fields under which the built-in plugins name files.
var pathKeys = map[string]bool{"path": true, "paths": true, "files": true, "env": true, "envs": true, "resources": true}

// collectPaths finds the files that the configuration of a built-in plugin names.
// A value that is no file at all is kept out unless it looks remote.
func collectPaths(value any, at string, out *[]reference) {
	object, ok := value.(map[string]any)
	if !ok {
		if list, ok := value.([]any); ok {
			for i, item := range list {
				collectPaths(item, fmt.Sprintf("%s[%d]", at, i), out)
			}
		}
		return
	}
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		field := strings.TrimPrefix(at+"."+key, ".")
		if pathKeys[key] {
			for _, p := range texts(object[key]) {
				if _, name, found := strings.Cut(p, "="); found && key == "files" {
					p = name
				}
				if looksRemote(p) {
					*out = append(*out, reference{path: p, field: field})
				}
			}
		}
		collectPaths(object[key], field, out)
	}
}

func texts(value any) []string {
	switch typed := value.(type) {
	case string:
		return []string{typed}
	case []any:
		var out []string
		for _, item := range typed {
			if text, ok := item.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}
