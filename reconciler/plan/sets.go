package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// wantReplicaSets are the ReplicaSets to create, resize or mark. Under a spec that
// can't be used nothing is touched, but for an abort, which needs stable whole.
func wantReplicaSets(in In, st v1alpha1.RolloutStatus) []ReplicaSetWant {
	b := sortOut(in, st)
	if !usable(in) && !takenBack(st) {
		return nil
	}
	var want sizes
	deadlines := map[string]time.Time{}
	if routed(in) {
		want, deadlines = sizeRouted(in, st, b)
	} else {
		want = moveBasic(in, st, b)
	}
	if !usable(in) {
		want = sizes{st.StableRS: max(want[st.StableRS], desired(b.stable))}
	}
	return diff(in, st, withSpare(in, st, want), deadlines)
}

// diff turns wanted sizes into wants, leaving out what is so already. The new
// stable version is marked first: a crash then leaves two marks and never none.
func diff(in In, st v1alpha1.RolloutStatus, want sizes, deadlines map[string]time.Time) []ReplicaSetWant {
	hashes := make([]string, 0, len(want)+len(in.ReplicaSets))
	for hash := range want {
		hashes = append(hashes, hash)
	}
	for _, rs := range in.ReplicaSets {
		hashes = append(hashes, rs.Hash)
	}
	rank := func(hash string) int {
		switch hash {
		case st.StableRS:
			return 0
		case st.CurrentPodHash:
			return 1
		}
		return 2
	}
	slices.SortFunc(hashes, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	var out []ReplicaSetWant
	for _, hash := range slices.Compact(hashes) {
		if next, changed := wantSet(in, st, hash, want, deadlines); changed {
			out = append(out, next)
		}
	}
	return out
}

func wantSet(in In, st v1alpha1.RolloutStatus, hash string, want sizes, deadlines map[string]time.Time) (ReplicaSetWant, bool) {
	rs := find(in, hash)
	next := ReplicaSetWant{Hash: hash, Create: rs == nil, Role: role(st, hash), Revision: revision(in, st, hash)}
	if at, ok := deadlines[hash]; ok {
		next.ScaleDownAt = &at
	}
	count, sized := want[hash]
	if rs == nil {
		if !sized || hash == "" || hash != in.Template.Hash {
			return next, false // we don't have its template
		}
		next.Replicas = count
		next.Why = fmt.Sprintf("Created ReplicaSet %s with %d pods", setName(in, hash), count)
		return next, true
	}
	if rs.Deleting {
		return next, false
	}
	next.Replicas = rs.Desired
	if sized {
		next.Replicas = count
	} else if rs.Desired > 0 {
		next.ScaleDownAt = rs.ScaleDownAt
	}
	if next.Role == "" && next.Replicas > 0 && in.Spec.Strategy.BlueGreen != nil && hasServed(rs) {
		next.Role = v1alpha1.RoleRetired
	}
	if next.Role == "" && outranked(in, st, *rs) && next.Replicas == rs.Desired && sameTime(next.ScaleDownAt, rs.ScaleDownAt) {
		next.Role = rs.Role
	}
	next.Why = why(*rs, next)
	same := next.Replicas == rs.Desired && next.Role == rs.Role && next.Revision == rs.Revision && sameTime(next.ScaleDownAt, rs.ScaleDownAt)
	return next, !same
}

// outranked says that a version which was stable may keep its mark until something
// else of it is written, for nobody can take it for the stable one: that is marked
// before it (see diff), and has a higher revision.
func outranked(in In, st v1alpha1.RolloutStatus, rs ReplicaSet) bool {
	stable := find(in, st.StableRS)
	return rs.Role == v1alpha1.RoleStable && rs.Desired > 0 && rs.Hash != st.CurrentPodHash && in.Spec.Strategy.BlueGreen == nil &&
		stable != nil && !stable.Deleting && stable.Revision > rs.Revision
}

func why(rs ReplicaSet, next ReplicaSetWant) string {
	switch {
	case next.Replicas > rs.Desired:
		return fmt.Sprintf("Scaled up ReplicaSet %s (revision %d) from %d to %d", rs.Name, next.Revision, rs.Desired, next.Replicas)
	case next.Replicas < rs.Desired:
		return fmt.Sprintf("Scaled down ReplicaSet %s (revision %d) from %d to %d", rs.Name, next.Revision, rs.Desired, next.Replicas)
	case next.Role != rs.Role && next.Role != "":
		return fmt.Sprintf("Marked ReplicaSet %s as %s", rs.Name, next.Role)
	case next.ScaleDownAt != nil && rs.ScaleDownAt == nil:
		return fmt.Sprintf("Keeping the pods of ReplicaSet %s for a while", rs.Name)
	}
	return fmt.Sprintf("Updated the marks of ReplicaSet %s", rs.Name)
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

func role(st v1alpha1.RolloutStatus, hash string) string {
	switch {
	case hash == st.StableRS:
		return v1alpha1.RoleStable
	case isRejected(st, hash):
		return v1alpha1.RoleRejected
	}
	return ""
}

// revision gives the current version the highest number, once; a ReplicaSet that
// is used again gets a new one (Argo 2.10).
func revision(in In, st v1alpha1.RolloutStatus, hash string) int64 {
	own, highest := int64(0), int64(0)
	for _, rs := range in.ReplicaSets {
		if rs.Hash == hash {
			own = rs.Revision
		} else {
			highest = max(highest, rs.Revision)
		}
	}
	if hash != st.CurrentPodHash || own > highest {
		return own
	}
	if in.Spec.RollbackWindow != nil && own > 0 && in.Status.CurrentPodHash != hash {
		return own // whether it is recent hangs on the number, until that is persisted
	}
	return highest + 1
}

// prune names ReplicaSets without pods over the history limit, oldest first.
func prune(in In, st v1alpha1.RolloutStatus) []string {
	if !usable(in) {
		return nil
	}
	limit := int32(defaultRevisionHistory)
	if in.Spec.RevisionHistoryLimit != nil {
		limit = *in.Spec.RevisionHistoryLimit
	}
	var old []ReplicaSet
	for _, rs := range in.ReplicaSets {
		kept := slices.Contains([]string{
			st.StableRS, st.CurrentPodHash, in.Status.StableRS, in.Status.CurrentPodHash, in.Template.Hash,
		}, rs.Hash) || named(in, rs.Hash)
		if !kept && !rs.Deleting && rs.Observed && size(&rs) == 0 {
			old = append(old, rs)
		}
	}
	slices.SortFunc(old, func(a, b ReplicaSet) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	var out []string
	for _, rs := range old[:max(0, len(old)-int(limit))] {
		out = append(out, rs.Name)
	}
	return out
}
