package render

import (
	"sort"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// Reaching returns the folders, sorted, of the kustomizations of a tree that read
// one of the files, themselves or through others. Kustomizations that others name
// are left out: what they render to is seen there. One with generators,
// transformers or validators is taken to read every file; one that can't be read
// is left out, because it renders to nothing.
func Reaching(files Files, paths []string) ([]string, error) {
	t, err := newTree(files)
	if err != nil {
		return nil, err
	}
	r := &reach{tree: t, wanted: map[string]bool{}, nodes: map[string]*reachNode{}}
	for _, p := range paths {
		r.wanted[p] = true
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	var out []string
	for folder, node := range r.nodes {
		if !node.named && r.reaches(folder, map[string]bool{}) {
			out = append(out, folder)
		}
	}
	sort.Strings(out)
	return out, nil
}

type reach struct {
	tree   *tree
	wanted map[string]bool
	nodes  map[string]*reachNode
}

// reachNode is one kustomization: the files and folders that it names.
type reachNode struct {
	files, folders []string
	// all is true when what it reads can't be told from its paths alone.
	all bool
	// named is true when another kustomization names it.
	named bool
}

// read parses every kustomization of the tree.
func (r *reach) read() error {
	byFolder := map[string]string{}
	var load []string
	for folder := range r.tree.folders {
		name := r.tree.kustomizationOf(folder)
		if name == "" {
			continue
		}
		if real, err := r.tree.resolve(join(folder, name)); err == nil && !r.tree.isFolder(real) {
			byFolder[folder] = real
			load = append(load, real)
		}
	}
	sort.Strings(load)
	if err := r.tree.load(load); err != nil {
		return err
	}
	for folder, file := range byFolder {
		var k types.Kustomization
		if yaml.Unmarshal(r.tree.data[file], &k) != nil {
			continue
		}
		r.nodes[folder] = r.node(folder, file, k)
	}
	for folder, node := range r.nodes {
		for _, sub := range node.folders {
			if other := r.nodes[sub]; other != nil && sub != folder {
				other.named = true
			}
		}
	}
	return nil
}

func (r *reach) node(folder, file string, k types.Kustomization) *reachNode {
	node := &reachNode{files: []string{file}, all: len(k.Generators)+len(k.Transformers)+len(k.Validators) > 0}
	for _, ref := range references(k) {
		if looksRemote(ref.path) {
			continue
		}
		real, err := r.tree.resolve(join(folder, ref.path))
		switch {
		case err != nil:
		case r.tree.isFolder(real):
			node.folders = append(node.folders, real)
		default:
			node.files = append(node.files, real)
		}
	}
	return node
}

func (r *reach) reaches(folder string, seen map[string]bool) bool {
	node := r.nodes[folder]
	if node == nil || seen[folder] {
		return false
	}
	seen[folder] = true
	if node.all {
		return true
	}
	for _, file := range node.files {
		if r.wanted[file] {
			return true
		}
	}
	for _, sub := range node.folders {
		if r.reaches(sub, seen) {
			return true
		}
	}
	return false
}
