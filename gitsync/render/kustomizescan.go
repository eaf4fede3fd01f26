package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/gitsync"
)

var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomizationOf is the name of a folder's kustomization file; empty when it has none.
func (t *tree) kustomizationOf(folder string) string {
	for _, name := range kustomizationNames {
		if _, ok := t.mode[join(folder, name)]; ok {
			return name
		}
	}
	return ""
}

// scan reads every file that a kustomization reaches before kustomize does. It
// is what keeps kustomize in the repository: kustomize itself would fetch a URL
// and run git for whatever looks like a repository. Every YAML file is inspected
// on the way, because kustomize lets the last of two equal keys win.
type scan struct {
	tree    *tree
	done    map[string]bool
	active  map[string]bool
	checked map[string]bool
	errs    gitsync.ManifestErrors
}

// reference is a path that a kustomization names.
type reference struct {
	path string
	// field that names it, such as resources[2].
	field string
	// folder is true where a folder with a kustomization may be named.
	folder bool
	// manifest is true where the file is YAML that kustomize decodes.
	manifest bool
	// plugin is true where the file configures a generator or transformer.
	plugin bool
}

// visit scans the kustomization of a real folder and those that it names. plugin
// is true where the result configures generators or transformers.
func (s *scan) visit(folder string, plugin bool) error {
	key := fmt.Sprint(folder, plugin)
	if s.done[key] {
		return nil
	}
	s.done[key], s.active[folder] = true, true
	defer delete(s.active, folder)
	if len(s.active) > maxFolders {
		s.fail(folder, "", "kustomizations nest deeper than %d", maxFolders)
		return nil
	}
	file, err := s.tree.resolve(join(folder, s.tree.kustomizationOf(folder)))
	if err != nil {
		return s.broken(join(folder, s.tree.kustomizationOf(folder)), "", err)
	}
	data, err := s.tree.read(file)
	if err != nil {
		return s.broken(file, "", err)
	}
	if !s.inspect(file, data) {
		return nil
	}
	var k types.Kustomization
	if err := yaml.UnmarshalStrict(data, &k); err != nil {
		s.fail(file, "", "%s", strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
		return nil
	}
	if len(k.OpenAPI) > 0 && k.OpenAPI["path"] == "" {
		s.fail(file, "openapi", "only openapi.path can be used")
		return nil
	}
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 || k.HelmGlobals != nil {
		s.fail(file, "helmCharts", "Helm charts are not rendered: commit the rendered manifests")
		return nil
	}
	refs := references(k)
	for i := range refs {
		refs[i].plugin = refs[i].plugin || plugin
	}
	return s.follow(file, folder, refs)
}

// follow resolves references, reads their files in one request, and visits the
// kustomizations among them.
func (s *scan) follow(file, folder string, refs []reference) error {
	var files, folders []string
	var fileRefs, folderRefs []reference
	for _, ref := range refs {
		if looksRemote(ref.path) {
			s.fail(file, ref.field, "%s is remote; only files of this repository are read: commit it to the repository", ref.path)
			continue
		}
		real, err := s.tree.resolve(join(folder, ref.path))
		if path.IsAbs(ref.path) {
			err = errOutside
		}
		switch {
		case err != nil:
			if err := s.broken(file, ref.field, fmt.Errorf("%s %w", ref.path, err)); err != nil {
				return err
			}
		case !s.tree.isFolder(real):
			files, fileRefs = append(files, real), append(fileRefs, ref)
		case !ref.folder:
			s.fail(file, ref.field, "%s is a folder; a file is wanted", ref.path)
		case s.tree.kustomizationOf(real) == "":
			s.fail(file, ref.field, "the folder %s has no kustomization.yaml", ref.path)
		case s.active[real]:
			s.fail(file, ref.field, "%s leads back to a kustomization that is being built: a cycle", ref.path)
		default:
			folders, folderRefs = append(folders, real), append(folderRefs, ref)
		}
	}
	if err := s.tree.load(files); err != nil {
		return s.broken(file, "", err)
	}
	for i, real := range files {
		if err := s.file(file, folder, real, fileRefs[i]); err != nil {
			return err
		}
	}
	for i, sub := range folders {
		if err := s.visit(sub, folderRefs[i].plugin); err != nil {
			return err
		}
	}
	return nil
}

// file inspects a file that a kustomization names.
func (s *scan) file(file, folder, real string, ref reference) error {
	data := s.tree.data[real]
	if isLFSPointer(data) {
		s.fail(file, ref.field, "%s %s", real, errLFS.Error())
		return nil
	}
	if !ref.manifest || !s.inspect(real, data) || !ref.plugin {
		return nil
	}
	values, _ := decodeFile(real, data)
	for _, v := range values {
		if err := s.plugin(real, folder, v.object); err != nil {
			return err
		}
	}
	return nil
}

// plugin follows the paths in the configuration of a generator or transformer.
func (s *scan) plugin(file, folder string, object map[string]any) error {
	var refs []reference
	collectPaths(object, "", &refs)
	return s.follow(file, folder, refs)
}

// inspect checks the YAML of a file once; false means that it is unusable.
func (s *scan) inspect(file string, data []byte) bool {
	if good, known := s.checked[file]; known {
		return good
	}
	errs := inspectFile(file, data)
	s.errs = append(s.errs, errs...)
	s.checked[file] = len(errs) == 0
	return len(errs) == 0
}

// broken turns what is wrong with a path into a ManifestError; errors of reading
// the tree are returned.
func (s *scan) broken(file, field string, err error) error {
	var large *TooLargeError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOutside), errors.Is(err, errLinkLoop), errors.Is(err, errSubmodule):
		s.fail(file, field, "%s", strings.TrimSuffix(err.Error(), ": "+fs.ErrNotExist.Error()))
	case errors.As(err, &large):
		s.fail(large.Path, "", "the file has more than %d bytes: split it", large.Limit)
	default:
		return err
	}
	return nil
}

func (s *scan) fail(file, field, format string, args ...any) {
	s.errs = append(s.errs, &gitsync.ManifestError{File: file, Field: field, Problem: fmt.Sprintf(format, args...)})
}

// scpLike is user@host:path.
var scpLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*@`)

// looksRemote is true for every text that kustomize may take for a URL or for a
// Git repository. It errs on the side of true.
func looksRemote(p string) bool {
	lower := strings.ToLower(p)
	return strings.Contains(p, "://") || strings.HasPrefix(lower, "git::") || strings.HasPrefix(lower, "http:") ||
		strings.HasPrefix(lower, "https:") || strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:") ||
		scpLike.MatchString(p)
}
