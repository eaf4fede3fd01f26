package render

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"

	"github.com/pushback-dev/pushback/gitsync"
)

// Result is what a folder declares.
type Result struct {
	// Objects in the order of their files and documents, or as kustomize lists them.
	Objects []gitsync.Object
	// Rejected are objects that can't be kept in step with Git and are left out,
	// while the others go on: those with generateName and no name.
	Rejected gitsync.ManifestErrors

	tree *tree
}

// Source is a file as Git keeps it.
type Source struct {
	Path string
	Mode uint32
	Data []byte
}

// Sources are the files that the render read for an object, as Git keeps them:
// symbolic links are followed, so that each is the real file.
func (r Result) Sources(o gitsync.Object) []Source {
	var out []Source
	for _, p := range o.Files {
		out = append(out, Source{Path: p, Mode: r.tree.mode[p], Data: r.tree.data[p]})
	}
	return out
}

// PathNotFoundError says that the folder isn't in the repository.
type PathNotFoundError struct{ Path string }

// Error names the folder.
func (e *PathNotFoundError) Error() string {
	return fmt.Sprintf("the path %q is not a folder of the repository: correct spec.path or add the folder", e.Path)
}

// Folder renders a folder of a tree; "" and "." are the repository's root.
//
// A folder with a kustomization is built with kustomize. Otherwise every .yaml,
// .yml and .json file in it and in the folders below is read, in the order of
// their paths; a folder below that has a kustomization is built, and names that
// start with a dot are passed over.
//
// Errors: *PathNotFoundError, gitsync.ManifestErrors for what a person must
// correct in Git, and any other error from reading the tree.
func Folder(files Files, folder string) (Result, error) {
	t, err := newTree(files)
	if err != nil {
		return Result{}, err
	}
	root, err := t.resolve(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !t.isFolder(root):
		return Result{}, &PathNotFoundError{Path: folder}
	case errors.Is(err, errOutside), errors.Is(err, errSubmodule), errors.Is(err, errLinkLoop):
		return Result{}, gitsync.ManifestErrors{{File: folder, Problem: "spec.path " + err.Error()}}
	case err != nil:
		return Result{}, err
	}
	w := &walk{tree: t, seen: map[string]bool{}}
	if err := w.folder(root, 0); err != nil {
		return Result{}, err
	}
	if err := w.decode(); err != nil {
		return Result{}, err
	}
	if err := w.errs.OrNil(); err != nil {
		return Result{}, err
	}
	result := Result{tree: t}
	for _, object := range w.objects {
		if object.GetName() == "" {
			result.Rejected = append(result.Rejected, object.Errorf("metadata.generateName",
				"an object without a name would be created anew at every sync: give it metadata.name"))
			continue
		}
		result.Objects = append(result.Objects, object)
	}
	return result, nil
}

// walk collects the objects of a folder and those below.
type walk struct {
	tree    *tree
	seen    map[string]bool // real paths, so that a linked file is read once
	plain   []string        // real paths of manifests still to be decoded
	objects []gitsync.Object
	errs    gitsync.ManifestErrors
}

// folder visits one real folder. It returns only errors of reading the tree.
func (w *walk) folder(folder string, depth int) error {
	if w.seen[folder+"/"] {
		return nil
	}
	w.seen[folder+"/"] = true
	if depth > maxFolders {
		w.fail(folder, fmt.Sprintf("folders nest deeper than %d", maxFolders))
		return nil
	}
	if w.tree.kustomizationOf(folder) != "" {
		objects, err := w.tree.build(folder)
		var wrong gitsync.ManifestErrors
		if errors.As(err, &wrong) {
			w.errs = append(w.errs, wrong...)
			return nil
		}
		w.objects = append(w.objects, objects...)
		return err
	}
	for _, name := range w.tree.folders[folder] {
		if name[0] == '.' {
			continue
		}
		if err := w.entry(join(folder, name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(p string, depth int) error {
	mode, isFile := w.tree.mode[p]
	if mode == modeSubmodule || (isFile && mode != modeSymlink && !isManifest(p)) {
		return nil
	}
	real, err := w.tree.resolve(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.fail(p, "the symbolic link leads to nothing: correct or remove it")
		return nil
	case errors.Is(err, errOutside), errors.Is(err, errLinkLoop), errors.Is(err, errSubmodule):
		w.fail(p, "the symbolic link "+err.Error())
		return nil
	case err != nil:
		return err
	case w.tree.isFolder(real):
		return w.folder(real, depth+1)
	}
	if isManifest(p) && !w.seen[real] {
		w.seen[real] = true
		w.plain = append(w.plain, real)
	}
	return nil
}

// decode reads the plain manifests in one request and decodes them.
func (w *walk) decode() error {
	if err := w.tree.load(w.plain); err != nil {
		var large *TooLargeError
		if errors.As(err, &large) {
			w.fail(large.Path, fmt.Sprintf("the file has more than %d bytes: split it", large.Limit))
			return nil
		}
		return err
	}
	sort.Strings(w.plain)
	var objects []gitsync.Object
	for _, p := range w.plain {
		values, errs := decodeFile(p, w.tree.data[p])
		w.errs = append(w.errs, errs...)
		for _, v := range values {
			more, errs := flatten(p, v)
			objects = append(objects, more...)
			w.errs = append(w.errs, errs...)
		}
	}
	w.objects = slices.Concat(objects, w.objects)
	return nil
}

func (w *walk) fail(p, problem string) {
	w.errs = append(w.errs, &gitsync.ManifestError{File: p, Problem: problem})
}

func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}
