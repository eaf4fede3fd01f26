package revert

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/pushback-dev/pushback/gitsync/revert/yamledit"
)

// candidate is one change of one file.
type candidate struct {
	file   string
	source *yamledit.File
	change yamledit.Change
	// whole is the stored text of a file that is no YAML.
	whole []byte
}

func (c candidate) line() int { return c.change.Line }

func (c candidate) key() string {
	return fmt.Sprintf("%s\x00%s\x00%d\x00%d", c.file, c.change.Path, c.change.Line, len(c.whole))
}

// kinds are the candidates, by how likely they are to be all that is needed.
type kinds struct {
	// template: what differs inside the pod template in its own file: single
	// values; values and the smallest nodes; the template as a whole.
	scalars, nodes, templates set
	// images of kustomizations.
	images set
	// rest: single values elsewhere in the files that the render read; then nodes and whole files.
	rest, wide set
}

// attempts from the narrowest to the widest.
func (k kinds) attempts() []set {
	inside := k.nodes
	return []set{
		k.scalars, k.nodes, k.templates, k.images,
		join(k.images, k.scalars), join(k.images, inside),
		join(k.images, k.scalars, k.rest), join(k.images, inside, k.rest),
		join(k.images, inside, k.wide, k.rest),
	}
}

// candidates compares the stored files with the head's.
func candidates(in In) *comparer {
	c := &comparer{in: in, parsed: map[string]*yamledit.File{}}
	for _, name := range sortedKeys(in.Stored) {
		c.compare(name)
	}
	return c
}

// comparer gathers candidates, and why some could not be had.
type comparer struct {
	in     In
	parsed map[string]*yamledit.File
	out    kinds
	// refusedTemplate is about the file that holds the template; refused about another.
	refusedTemplate, refused *Refused
}

// refuse keeps the first error about a file that only plays a part.
func (c *comparer) refuse(file string, err error) {
	if c.refused == nil && err != nil {
		c.refused = refuseFile(file, err)
	}
}

// refuseTemplate keeps the first error about the file that holds the template:
// when nothing works, this is why.
func (c *comparer) refuseTemplate(file string, err error) {
	if c.refusedTemplate == nil && err != nil {
		c.refusedTemplate = refuseFile(file, err)
	}
}

// refuseFile takes the line out of what yamledit says.
func refuseFile(file string, err error) *Refused {
	r := &Refused{File: file, Reason: err.Error()}
	var (
		plain     *yamledit.Error
		anchor    *yamledit.AnchorError
		duplicate *yamledit.DuplicateKeyError
	)
	switch {
	case errors.As(err, &anchor):
		r.Line = anchor.Line
	case errors.As(err, &duplicate):
		r.Line = duplicate.Second
	case errors.As(err, &plain):
		r.Line = plain.Line
		if err == error(plain) {
			r.Reason = plain.Reason
		}
	}
	return r
}

// parse reads a head file once.
func (c *comparer) parse(name string) (*yamledit.File, error) {
	if f := c.parsed[name]; f != nil {
		return f, nil
	}
	f, err := yamledit.Parse(c.in.Head[name])
	if err == nil {
		c.parsed[name] = f
	}
	return f, err
}

func (c *comparer) compare(name string) {
	old := c.in.Stored[name]
	now, exists := c.in.Head[name]
	if exists && bytes.Equal(old, now) {
		return
	}
	if !isYAML(name) {
		if exists {
			c.out.wide = append(c.out.wide, candidate{file: name, whole: old})
		}
		return
	}
	stored, err := yamledit.Parse(old)
	if err != nil {
		c.refuse(name, err)
		return
	}
	if olds := c.holders(stored); len(olds) > 0 {
		c.template(name, stored, olds)
	} else if !exists {
		c.refuse(name, errors.New("the stable template was rendered from this file, which is gone: revert by hand"))
	}
	if exists {
		c.other(name, stored)
	}
}

func isYAML(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return path.Base(name) == "Kustomization"
}

// template compares the Rollout's own document, olds in the stored file.
func (c *comparer) template(name string, stored *yamledit.File, olds []yamledit.Object) {
	if len(olds) > 1 {
		c.refuseTemplate(name, c.twice(olds))
		return
	}
	file, head, at, ok := c.locate(name)
	if !ok {
		return
	}
	diff, err := yamledit.DiffObjects(head, at, stored, olds[0], c.path()...)
	c.refuseTemplate(file, err)
	c.out.scalars = append(c.out.scalars, wrap(file, head, diff.Scalars)...)
	c.out.nodes = append(c.out.nodes, wrap(file, head, diff.Outer())...)
	if diff.Empty() {
		return
	}
	if whole, err := yamledit.Whole(head, at, stored, olds[0], c.path()...); err == nil {
		c.out.templates = append(c.out.templates, candidate{file: file, source: head, change: whole})
	}
}

func (c *comparer) twice(objects []yamledit.Object) error {
	return fmt.Errorf("%s is declared on line %d and on line %d: remove one of them", c.source(), objects[0].Line, objects[1].Line)
}

// locate finds the Rollout's document at the head: in the same file, or, if it
// was moved since, in the one other file that has it.
func (c *comparer) locate(name string) (file string, head *yamledit.File, at yamledit.Object, ok bool) {
	if _, exists := c.in.Head[name]; exists {
		if head, at, ok = c.holder(name); ok || c.refusedTemplate != nil {
			return name, head, at, ok
		}
	}
	var found []string
	for _, other := range sortedKeys(c.in.Head) {
		if _, known := c.in.Stored[other]; known || !isYAML(other) {
			continue
		}
		if f, o, ok := c.holder(other); ok {
			found = append(found, other)
			file, head, at = other, f, o
		}
	}
	switch len(found) {
	case 1:
		return file, head, at, true
	case 0:
		c.refuseTemplate(name, fmt.Errorf("%s is no longer declared in any file: revert by hand", c.source()))
	default:
		c.refuseTemplate(found[0], fmt.Errorf("%s is declared in %s: remove one of them", c.source(), strings.Join(found, " and in ")))
	}
	return "", nil, at, false
}

// holder finds the Rollout's document in one file of the head.
func (c *comparer) holder(name string) (*yamledit.File, yamledit.Object, bool) {
	f, err := c.parse(name)
	if err != nil {
		if c.in.Stored[name] != nil {
			c.refuseTemplate(name, err)
		}
		return nil, yamledit.Object{}, false
	}
	objects := c.holders(f)
	if len(objects) > 1 {
		c.refuseTemplate(name, c.twice(objects))
	}
	if len(objects) != 1 {
		return nil, yamledit.Object{}, false
	}
	return f, objects[0], true
}

// holders are the documents of a file that are the Rollout's source and have a template.
func (c *comparer) holders(f *yamledit.File) []yamledit.Object {
	want := c.source()
	var found []yamledit.Object
	for _, o := range f.Objects() {
		if o.Kind != want.Kind || o.Name != want.Name ||
			(want.APIVersion != "" && o.APIVersion != want.APIVersion) ||
			(want.Namespace != "" && o.Namespace != "" && o.Namespace != want.Namespace) {
			continue
		}
		if o.Has(c.path()...) {
			found = append(found, o)
		}
	}
	return found
}

func (c *comparer) source() Identity {
	if c.in.Source != (Identity{}) {
		return c.in.Source
	}
	return Identity{Kind: c.in.Rollout.Kind, Name: c.in.Rollout.Name, Namespace: c.in.Rollout.Namespace}
}

func (c *comparer) path() []string { return c.in.path() }

// other compares a file that is read for the template without holding it.
func (c *comparer) other(name string, stored *yamledit.File) {
	head, err := c.parse(name)
	if err != nil {
		c.refuse(name, err)
		return
	}
	if isKustomization(name) {
		images, err := yamledit.DiffDocuments(head, stored, "images")
		c.refuse(name, err)
		c.out.images = append(c.out.images, wrap(name, head, images.Outer())...)
	}
	diff, err := yamledit.DiffDocuments(head, stored)
	c.refuse(name, err)
	c.out.rest = append(c.out.rest, wrap(name, head, diff.Scalars)...)
	c.out.wide = append(c.out.wide, wrap(name, head, diff.Outer())...)
}

func isKustomization(name string) bool {
	switch path.Base(name) {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return true
	}
	return false
}

func wrap(file string, source *yamledit.File, changes []yamledit.Change) set {
	var out set
	for _, change := range changes {
		out = append(out, candidate{file: file, source: source, change: change})
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
