package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
	"github.com/pushback-dev/pushback/gitsync/render"
	"github.com/pushback-dev/pushback/gitsync/revert"
	"github.com/pushback-dev/pushback/templatehash"
)

// headState is the head of the branch as one try sees it.
type headState struct {
	w     *work
	tree  *fetch.Tree
	files treeFiles
	// err is the first error of reading the tree, as opposed to one of what is in it.
	err error
	// made is what the GitSync's folder declares, or why not.
	made func() (declared, error)
}

// head fetches the newest commit.
func (w *work) head(ctx context.Context, remote fetch.Remote, store *sharedStore) (*headState, error) {
	tree, err := store.Fetch(ctx, remote, w.sync.Spec.Path)
	if err != nil {
		return nil, err
	}
	h := &headState{w: w, tree: tree, files: openTree(ctx, tree, store.Store, remote)}
	h.made = sync.OnceValues(func() (declared, error) { return declare(h.files, w.sync) })
	return h, nil
}

func (h *headState) revision() string {
	return gitsync.Revision{Branch: branchOf(h.w.sync), Hash: h.tree.Commit}.String()
}

// template is the hash of the Rollout's template at the head.
func (h *headState) template() (hash string, found bool, err error) {
	made, err := h.made()
	if err != nil {
		return "", false, err
	}
	holder := h.w.holder(made.objects)
	if holder == nil {
		return "", false, nil
	}
	hash, err = hashOf(*holder)
	return hash, true, err
}

// holder is the object that declares the Rollout's template: itself or, with a
// workloadRef, the workload. Nil when there is no such Rollout or workload.
func (w *work) holder(objects []gitsync.Object) *gitsync.Object {
	find := func(id revert.Identity) *gitsync.Object {
		for i := range objects {
			if identityOf(objects[i], w.sync) == id {
				return &objects[i]
			}
		}
		return nil
	}
	rollout := find(w.identity())
	if rollout == nil {
		return nil
	}
	named, found, err := unstructured.NestedStringMap(rollout.Object, "spec", "workloadRef")
	if err != nil || !found {
		return rollout
	}
	return find(revert.Identity{APIVersion: named["apiVersion"], Kind: named["kind"], Namespace: w.identity().Namespace, Name: named["name"]})
}

// identity of the Rollout as it is rendered.
func (w *work) identity() revert.Identity {
	return revert.Identity{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RolloutKind,
		Namespace: w.revert.Spec.Rollout.Namespace, Name: w.revert.Spec.Rollout.Name,
	}
}

// input is what the edit is composed from and proved against.
func (w *work) input(ctx context.Context, head *headState, kept map[string][]byte) (revert.In, error) {
	in := revert.In{
		Rollout: w.identity(), Rejected: w.revert.Spec.Rejected, Stable: w.revert.Spec.Stable,
		Stored: kept, Head: map[string][]byte{},
		Own: head.render(w.sync),
	}
	made, err := head.made()
	var wrong gitsync.ManifestErrors
	if errors.As(err, &wrong) {
		return in, nil // Compose meets the same error and refuses
	}
	if err != nil {
		return in, err
	}
	holder := w.holder(made.objects)
	if holder != nil {
		in.Rollout, in.TemplatePath = identityOf(*holder, w.sync), gitsync.TemplatePath(holder.GetKind())
	}
	for _, o := range made.objects {
		if id := identityOf(o, w.sync); id != in.Rollout && id != w.identity() {
			continue
		}
		for _, source := range made.result.Sources(o) {
			in.Head[source.Path] = source.Data
		}
	}
	in.Others, err = w.others(ctx, head, in.Head)
	return in, err
}

// others are the renders that must come out as before: the other GitSyncs of the
// branch, and the kustomizations that read a file which may change.
func (w *work) others(ctx context.Context, head *headState, touched map[string][]byte) ([]revert.Render, error) {
	neighbours, err := w.neighbours(ctx)
	if err != nil {
		return nil, err
	}
	var out []revert.Render
	folders := []string{strings.Trim(w.sync.Spec.Path, "./")}
	for i := range neighbours {
		out = append(out, head.render(&neighbours[i]))
		folders = append(folders, strings.Trim(neighbours[i].Spec.Path, "./"))
	}
	var paths []string
	for p := range touched {
		paths = append(paths, p)
	}
	reaching, err := render.Reaching(head.files, paths)
	if err != nil {
		return nil, err
	}
	for _, folder := range reaching {
		if slices.Contains(folders, folder) {
			continue
		}
		// Rendered as a GitSync of its own would, in no namespace.
		elsewhere := &v1alpha1.GitSync{Spec: v1alpha1.GitSyncSpec{Path: folder}}
		elsewhere.Name = folder
		out = append(out, head.render(elsewhere))
	}
	return out, nil
}

// render makes the objects of a GitSync at the head with edits.
func (h *headState) render(sync *v1alpha1.GitSync) revert.Render {
	name := "the kustomization " + sync.Name
	if sync.Namespace != "" {
		name = fmt.Sprintf("GitSync %s/%s", sync.Namespace, sync.Name)
	}
	return revert.Render{Name: name, Objects: func(edits map[string][]byte) ([]revert.Object, error) {
		files := h.files
		files.edits = edits
		made, err := declare(files, sync)
		if err != nil {
			var wrong gitsync.ManifestErrors
			var path *render.PathNotFoundError
			if h.err == nil && !errors.As(err, &wrong) && !errors.As(err, &path) {
				h.err = err
			}
			return nil, err
		}
		out := make([]revert.Object, 0, len(made.objects))
		for _, o := range made.objects {
			object, err := asRevertObject(o, sync)
			if err != nil {
				return nil, err
			}
			out = append(out, object)
		}
		return out, nil
	}}
}

func asRevertObject(o gitsync.Object, sync *v1alpha1.GitSync) (revert.Object, error) {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return revert.Object{}, err
	}
	out := revert.Object{Identity: identityOf(o, sync), JSON: text}
	if holdsTemplate(o) {
		out.TemplateHash, err = hashOf(o)
	}
	return out, err
}

// holdsTemplate is true for kinds whose template may be a Rollout's.
func holdsTemplate(o gitsync.Object) bool {
	switch o.GetAPIVersion() + " " + o.GetKind() {
	case v1alpha1.GroupVersion.String() + " " + v1alpha1.RolloutKind, "apps/v1 Deployment", "apps/v1 ReplicaSet", "v1 PodTemplate":
		return true
	}
	return false
}

// identityOf names an object where it would be applied.
func identityOf(o gitsync.Object, sync *v1alpha1.GitSync) revert.Identity {
	namespace := o.GetNamespace()
	switch {
	case sync.Spec.TargetNamespace != "":
		namespace = sync.Spec.TargetNamespace
	case namespace == "":
		namespace = sync.Namespace
	}
	return revert.Identity{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: namespace, Name: o.GetName()}
}

// hashOf is the hash of an object's pod template; empty when it has none.
func hashOf(o gitsync.Object) (string, error) {
	template, found, err := unstructured.NestedMap(o.Object, gitsync.TemplatePath(o.GetKind())...)
	if err != nil || !found {
		return "", err
	}
	text, err := json.Marshal(template)
	if err != nil {
		return "", err
	}
	return templatehash.Hash(templatehash.Version, text)
}

// sameURL compares two spellings of one repository's address.
func sameURL(a, b string) bool { return plainURL(a) == plainURL(b) }

func plainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return strings.ToLower(u.Hostname()) + "/" + strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
}
