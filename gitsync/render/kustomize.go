package render

import (
	_ "embed" // for the two files below
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/gitsync"
)

// Configuration says where Rollouts and AnalysisTemplates name other objects, as
// a file for a kustomization's configurations.
//
//go:embed kustomizeconfig.yaml
var Configuration []byte

// Schema holds the merge keys of Rollouts and AnalysisTemplates, as a file for a
// kustomization's openapi.path.
//
//go:embed kustomizeschema.json
var Schema []byte

// configurationFile is a name that no repository uses.
const configurationFile = ".pushback-kustomize-configuration.yaml"

// kustomizing is held while kustomize runs: the schema that merge keys come from
// is a variable of its library, for the whole process.
var kustomizing sync.Mutex

// schemaAdded is guarded by kustomizing.
var schemaAdded bool

// build runs kustomize on a real folder. It returns gitsync.ManifestErrors for
// what is wrong in Git.
func (t *tree) build(folder string) ([]gitsync.Object, error) {
	s := &scan{tree: t, done: map[string]bool{}, active: map[string]bool{}, checked: map[string]bool{}}
	if err := s.visit(folder, false); err != nil {
		return nil, err
	}
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	file := join(folder, t.kustomizationOf(folder))
	extra, ownOrigins, err := t.withConfiguration(folder, file)
	if err != nil {
		return nil, gitsync.ManifestErrors{{File: file, Problem: err.Error()}}
	}
	repository := &repositoryFS{tree: t, extra: extra, read: map[string]bool{}}
	built, err := kustomize(repository, folder)
	if err != nil {
		return nil, gitsync.ManifestErrors{{File: file, Problem: "kustomize: " + oneLine(err.Error())}}
	}
	var files []string
	for p := range repository.read {
		files = append(files, p)
	}
	sort.Strings(files)
	return t.objects(built, folder, file, files, ownOrigins)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// withConfiguration returns the top kustomization with our configuration added,
// and that configuration; and whether the user's own asks for origins.
func (t *tree) withConfiguration(folder, file string) (map[string][]byte, bool, error) {
	real, err := t.resolve(file)
	if err != nil {
		return nil, false, err
	}
	data, err := t.read(real)
	if err != nil {
		return nil, false, err
	}
	var k map[string]any
	if err := yaml.Unmarshal(data, &k); err != nil {
		return nil, false, err
	}
	configurations, _ := k["configurations"].([]any)
	k["configurations"] = append(slices.Clone(configurations), configurationFile)
	metadata, _ := k["buildMetadata"].([]any)
	own := slices.Contains(metadata, any(types.OriginAnnotations))
	if !own {
		k["buildMetadata"] = append(slices.Clone(metadata), types.OriginAnnotations)
	}
	text, err := json.Marshal(k)
	if err != nil {
		return nil, false, err
	}
	return map[string][]byte{file: text, join(folder, configurationFile): Configuration}, own, nil
}

// kustomize runs one build with our merge keys.
func kustomize(repository *repositoryFS, folder string) (built resmap.ResMap, err error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	if !schemaAdded {
		// The built-in schema first: with a repository's own in place, the library
		// would leave it out, and pod templates would have no merge keys.
		openapi.Schema()
		if err := openapi.AddSchema(Schema); err != nil {
			return nil, err
		}
		schemaAdded = true
	}
	defer func() {
		if openapi.GetSchemaVersion() == "using custom schema from file provided" {
			// A repository's own schema must not reach another's build.
			openapi.ResetOpenAPI()
			schemaAdded = false
		}
		if broken := recover(); broken != nil {
			openapi.ResetOpenAPI()
			schemaAdded = false
			err = fmt.Errorf("the build broke off: %v", broken)
		}
	}()
	options := krusty.MakeDefaultOptions()
	// The file system ends where the repository does; within it, files may be
	// shared between folders.
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	return krusty.MakeKustomizer(options).Run(repository, "/"+folder)
}

func (t *tree) objects(built resmap.ResMap, folder, file string, files []string, ownOrigins bool) ([]gitsync.Object, error) {
	var out []gitsync.Object
	var errs gitsync.ManifestErrors
	for _, r := range built.Resources() {
		origin := originOf(r, folder, file)
		if !ownOrigins {
			if err := r.SetOrigin(nil); err != nil {
				return nil, err
			}
		}
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := utiljson.Unmarshal(text, &object); err != nil {
			return nil, err
		}
		f := flattener{file: origin, value: value{object: object}}
		f.add(object, "", 0)
		errs = append(errs, f.errs...)
		for _, o := range f.objects {
			o.Files = files
			out = append(out, o)
		}
	}
	if err := errs.OrNil(); err != nil {
		return nil, err
	}
	return out, nil
}

// originOf is the file that an object came from; the kustomization's own when
// that isn't known.
func originOf(r *resource.Resource, folder, file string) string {
	origin, err := r.GetOrigin()
	if err != nil || origin == nil {
		return file
	}
	p := origin.Path
	if p == "" {
		p = origin.ConfiguredIn
	}
	if cleaned, err := clean(path.Join("./"+folder, p)); err == nil && p != "" {
		return cleaned
	}
	return file
}
