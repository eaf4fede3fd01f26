package revert

// Identity names an object, in a render or in a source file.
type Identity struct {
	// APIVersion such as pushback.dev/v1alpha1.
	APIVersion string
	Kind       string
	// Namespace is empty for an object of the cluster, and in a source file that leaves it to the apply.
	Namespace string
	Name      string
}

// String reads kind/namespace/name.
func (i Identity) String() string {
	if i.Namespace == "" {
		return i.Kind + "/" + i.Name
	}
	return i.Kind + "/" + i.Namespace + "/" + i.Name
}

// Object is one rendered object.
type Object struct {
	Identity
	// JSON of the whole object as it would be applied, translated.
	JSON []byte
	// TemplateHash of the pod template in it; empty for an object without one.
	// Only that of In.Rollout is read.
	TemplateHash string
}

// Render makes the objects of one GitSync, or of one kustomization of the tree.
type Render struct {
	// Name for messages, such as "GitSync flux-system/shop" or "apps/prod".
	Name string
	// Objects renders the head with the given files in the place of the head's
	// own: path in the repository -> bytes. It must not keep or change the map.
	// An error that is the same with and without edits does not stop a revert.
	Objects func(edits map[string][]byte) ([]Object, error)
}

// In is everything that an edit is composed from and proved against.
type In struct {
	// Rollout is the object, as it is rendered, that holds the pod template: the
	// Rollout itself or, for a workloadRef, the workload it names.
	Rollout Identity
	// Source is how that object is called in the files: same as Rollout but for
	// documents in another API group or a folder with a targetNamespace or a
	// namePrefix. An empty APIVersion or Namespace matches any; zero means Rollout's kind and name.
	Source Identity
	// TemplatePath to the pod template in the source document. Default spec, template.
	TemplatePath []string
	// Rejected is the template hash that Git is to stop declaring.
	Rejected string
	// Stable is the template hash that Git is to declare again; empty when there is none.
	Stable string
	// Stored are the files that the render read for the stable template: path -> Git's bytes.
	Stored map[string][]byte
	// Head are the files that the render reads at the head for In.Rollout, or more of the tree.
	Head map[string][]byte
	// Own renders the GitSync that declares the Rollout.
	Own Render
	// Others render every other GitSync of this repository and branch, and every
	// kustomization of the tree that may read one of the files; none of their
	// objects may change.
	Others []Render
}

// path is TemplatePath with its default.
func (in In) path() []string {
	if len(in.TemplatePath) > 0 {
		return in.TemplatePath
	}
	return []string{"spec", "template"}
}

// Outcome is what Compose found: *Edited, *AlreadyReverted, *Superseded,
// *NoTarget or *Refused.
type Outcome interface{ outcome() }

// Edited is an edit that is proved.
type Edited struct {
	// Edits are the new bytes of each file that changes: one or more.
	Edits map[string][]byte
	// Files are the paths of Edits, sorted.
	Files []string
}

// AlreadyReverted says that the head renders to the stable template.
type AlreadyReverted struct{}

// Superseded says that the head holds neither the rejected nor the stable
// template: a newer candidate, or no such object any more.
type Superseded struct {
	// Hash at the head; empty when the object is gone.
	Hash string
}

// NoTarget says that there is no stable template to go back to.
type NoTarget struct{}

// Refused says why no edit could be proved. The files are as they were.
type Refused struct {
	// File in the repository; empty when no single file is to blame.
	File string
	// Line from 1 in the head's file; 0 when unknown.
	Line int
	// Reason for people: what is in the way and what to do.
	Reason string
}

func (*Edited) outcome()          {}
func (*AlreadyReverted) outcome() {}
func (*Superseded) outcome()      {}
func (*NoTarget) outcome()        {}
func (*Refused) outcome()         {}

// Error makes a refusal an error: "file:line: reason".
func (r *Refused) Error() string { return r.where() + r.Reason }

// Compose finds the smallest edit of the head's files that makes In.Rollout
// render to the stable template and leaves every other object as it is, and
// proves it with In.Own and In.Others. It never returns an edit that is not
// proved, and never creates, deletes or renames a file.
func Compose(in In) Outcome { return compose(in) }
