package plan

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// MetadataWant gives a version's ReplicaSet and pods the labels and annotations
// of its role. Empty takes off what an earlier role has left.
type MetadataWant struct {
	Hash     string
	Metadata v1alpha1.PodTemplateMetadata
}

// wantMetadata is what each observed version is to have. It says what holds, not
// what changes: only who carries it out sees the pods. A spec that can't be used
// changes nothing.
func wantMetadata(in In, st v1alpha1.RolloutStatus) []MetadataWant {
	if !usable(in) {
		return nil
	}
	var out []MetadataWant
	for _, rs := range in.ReplicaSets {
		if !rs.Deleting {
			out = append(out, MetadataWant{Hash: rs.Hash, Metadata: metadataOf(in, st, rs.Hash)})
		}
	}
	return out
}

// metadataOf is what a role gives to a version. The current version has the
// canary's until it is stable, also after an abort: it is what the spec declares,
// and taking it back needs no more writes than it must. A first version has
// nothing to be told from, and is given stable's at once. These are Argo's rules;
// others than Argo's, the pods of a version that has no role any more lose it too.
func metadataOf(in In, st v1alpha1.RolloutStatus, hash string) v1alpha1.PodTemplateMetadata {
	stable, current := roleMetadata(in.Spec.Strategy)
	var of *v1alpha1.PodTemplateMetadata
	switch {
	case hash == st.StableRS, hash == st.CurrentPodHash && firstVersion(in, st):
		of = stable
	case hash == st.CurrentPodHash:
		of = current
	}
	if of == nil {
		return v1alpha1.PodTemplateMetadata{}
	}
	return *of.DeepCopy()
}

// roleMetadata is what the strategy declares for the two roles.
func roleMetadata(s v1alpha1.RolloutStrategy) (stable, current *v1alpha1.PodTemplateMetadata) {
	switch { // blue-green first: by now it is compiled to a canary, which has none of this
	case s.BlueGreen != nil:
		return s.BlueGreen.ActiveMetadata, s.BlueGreen.PreviewMetadata
	case s.Canary != nil:
		return s.Canary.StableMetadata, s.Canary.CanaryMetadata
	}
	return nil, nil
}

// dress adds to ReplicaSets that are written what their templates get beside what
// was declared, so that no pod starts without it.
func dress(in In, st v1alpha1.RolloutStatus, sets []ReplicaSetWant) []ReplicaSetWant {
	if !usable(in) {
		return sets
	}
	for i := range sets {
		of := metadataOf(in, st, sets[i].Hash)
		sets[i].Metadata = &of
		sets[i].Avoid = avoided(in, st, sets[i].Hash)
	}
	return sets
}

// avoided is the version whose hosts the pods of another are kept off: the stable
// one. A version that is stable, or the first, keeps off nobody.
func avoided(in In, st v1alpha1.RolloutStatus, hash string) string {
	wanted := false
	switch s := in.Spec.Strategy; {
	case s.BlueGreen != nil:
		wanted = s.BlueGreen.AntiAffinity != nil
	case s.Canary != nil:
		wanted = s.Canary.AntiAffinity != nil
	}
	if !wanted || hash == st.StableRS {
		return ""
	}
	return st.StableRS
}
