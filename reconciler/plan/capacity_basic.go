package plan

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// split returns the pods of canary and stable whose ratio comes nearest to a
// weight (Argo 2.2). Candidates are, in this order, the share of replicas rounded
// up and down out of replicas pods, and both out of one pod more when maxSurge
// allows one. The first of equally near ones wins, so that halves favour the
// canary. For weights from 1 to 99 no side is left without a pod, unless there is
// one replica and no surge.
func split(replicas, weight, maxSurge int32) (canary, stable int32) {
	if replicas <= 0 {
		return 0, 0
	}
	up := share(replicas, weight, routers.MaxWeight)
	down := int32(int64(replicas) * int64(weight) / int64(routers.MaxWeight))
	totals := []int32{replicas}
	if maxSurge > 0 {
		totals = append(totals, replicas+1)
	}
	whole := weight == 0 || weight == routers.MaxWeight || replicas == 1 && maxSurge == 0
	best, bestTotal := int64(-1), int64(1)
	stable = replicas
	for _, total := range totals {
		for _, count := range []int32{up, down} {
			if !whole && (count == 0 || count >= total) {
				continue
			}
			// distance/total is the error in percent; compared without division, so that ties are ties.
			distance := int64(count)*int64(routers.MaxWeight) - int64(weight)*int64(total)
			distance = max(distance, -distance)
			if best < 0 || distance*bestTotal < best*int64(total) {
				best, bestTotal = distance, int64(total)
				canary, stable = count, total-count
			}
		}
	}
	return canary, stable
}

// sizes are wanted pod counts by template hash.
type sizes map[string]int32

// basicTargets are the pod counts to move towards without a router. While nothing
// may go on, the version in progress keeps what it has and stable makes up the rest.
func basicTargets(in In, st v1alpha1.RolloutStatus, b buckets) (candidate, stable int32) {
	switch {
	case st.StableRS == "":
		return in.Replicas, 0
	case takenBack(st), !inProgress(st), confirmationPending(st):
		return 0, in.Replicas
	}
	candidate, stable = split(in.Replicas, stepWeight(in, index(st)), surge(in))
	if halted(in, st) && candidate > desired(b.candidate) {
		candidate = desired(b.candidate)
		stable = max(stable, in.Replicas-candidate)
	}
	return candidate, stable
}

// atCounts says that the pods are where a weight wants them (Argo 2.3): the
// canary available, stable's created, older ones not available any more.
func atCounts(in In, b buckets, weight int32) bool {
	wantCandidate, wantStable := split(in.Replicas, weight, surge(in))
	if b.stable == nil {
		wantCandidate, wantStable = in.Replicas, 0
	}
	if available(b.candidate) < enough(in, wantCandidate) || size(b.candidate) != wantCandidate {
		return wantCandidate == 0 && size(b.candidate) == 0 && othersGone(b)
	}
	if b.stable != nil && (b.stable.Desired != wantStable || b.stable.Replicas != wantStable) {
		return false
	}
	return othersGone(b)
}

func othersGone(b buckets) bool {
	for _, rs := range b.others {
		if rs.Available > 0 {
			return false
		}
	}
	return true
}

// moveBasic takes the pods one move closer to their targets. Together they never
// exceed replicas + maxSurge, and available ones never fall below replicas -
// maxUnavailable by our doing: a ReplicaSet that shrinks loses its unavailable
// pods first, and those are free to go, so that a broken stable version can't
// keep a good new one from getting out.
func moveBasic(in In, st v1alpha1.RolloutStatus, b buckets) sizes {
	wantCandidate, wantStable := basicTargets(in, st, b)
	m := basicMove{want: sizes{}}
	if hash := in.Template.Hash; find(in, hash) == nil && (hash == st.StableRS || hash == st.CurrentPodHash && inProgress(st) && !confirmationPending(st)) {
		m.want[hash] = 0 // made even where it is to have no pod
	}
	m.room = in.Replicas + surge(in) - total(in)
	m.spare = totalAvailable(in) - (in.Replicas - unavailable(in))
	m.grow(b.stable, st.StableRS, wantStable)
	m.grow(b.candidate, st.CurrentPodHash, growTarget(in, st, b, wantCandidate))
	older := int32(0)
	for _, rs := range b.others {
		older += size(&rs)
		m.shrink(&rs, 0)
	}
	if older == 0 || in.Replicas == 0 {
		m.shrink(b.candidate, wantCandidate)
		m.shrink(b.stable, wantStable)
	}
	return m.want
}

// growTarget is how far the version in progress may grow: not when it was taken
// back, and only of a template that we have.
func growTarget(in In, st v1alpha1.RolloutStatus, b buckets, want int32) int32 {
	if takenBack(st) || b.candidate == nil && st.CurrentPodHash != in.Template.Hash {
		return 0
	}
	return want
}

// basicMove spends the room for more pods and the spare available ones.
type basicMove struct {
	want  sizes
	room  int32
	spare int32
}

func (m *basicMove) grow(rs *ReplicaSet, hash string, want int32) {
	have := desired(rs)
	if hash == "" || want <= have || m.room <= 0 {
		return
	}
	next := min(want, have+m.room)
	m.room -= next - have
	m.want[hash] = next
}

func (m *basicMove) shrink(rs *ReplicaSet, want int32) {
	if rs == nil || want >= rs.Desired {
		return
	}
	serving := available(rs)
	next := max(want, serving-max(m.spare, 0))
	m.spare -= max(serving-next, 0)
	m.want[rs.Hash] = min(next, rs.Desired)
}

func desired(rs *ReplicaSet) int32 {
	if rs == nil {
		return 0
	}
	return rs.Desired
}

func total(in In) int32 {
	sum := int32(0)
	for _, rs := range in.ReplicaSets {
		sum += size(&rs)
	}
	return sum
}

func totalAvailable(in In) int32 {
	sum := int32(0)
	for _, rs := range in.ReplicaSets {
		sum += available(&rs)
	}
	return sum
}
