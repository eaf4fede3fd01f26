package plan

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// Blue-green runs in the canary's loop. Its stages are compiled to steps, and its
// Services to a routing of two sides: the active Service is the weight, which is
// 0 while it selects the stable version and all while it selects another one; the
// preview Service is the canary Service. So an abort, a raise, a clock and a crash
// are what they are to a canary.

// Stage is what a step of a blue-green update is for.
type Stage string

// The stages, in their order.
const (
	StagePre    Stage = "pre-promotion analysis"
	StagePause  Stage = "pause"
	StageSwitch Stage = "switch of the active Service"
	StagePost   Stage = "post-promotion analysis"
)

// Stages are the steps of a blue-green update: status.currentStepIndex counts them.
// Each but the switch is there only if the strategy asks for it.
func Stages(bg v1alpha1.BlueGreenStrategy) []Stage {
	var out []Stage
	if bg.PrePromotionAnalysis != nil {
		out = append(out, StagePre)
	}
	if waitsForPromotion(bg) || bg.AutoPromotionSeconds > 0 {
		out = append(out, StagePause)
	}
	out = append(out, StageSwitch)
	if bg.PostPromotionAnalysis != nil {
		out = append(out, StagePost)
	}
	return out
}

// StageSteps are the stages as steps of a canary.
func StageSteps(bg v1alpha1.BlueGreenStrategy) []v1alpha1.CanaryStep {
	var out []v1alpha1.CanaryStep
	for _, stage := range Stages(bg) {
		out = append(out, stageStep(bg, stage))
	}
	return out
}

// waitsForPromotion says that only a person promotes; then there is no timer.
func waitsForPromotion(bg v1alpha1.BlueGreenStrategy) bool {
	return bg.AutoPromotionEnabled != nil && !*bg.AutoPromotionEnabled
}

func stageStep(bg v1alpha1.BlueGreenStrategy, stage Stage) v1alpha1.CanaryStep {
	switch stage {
	case StagePre:
		return v1alpha1.CanaryStep{Analysis: bg.PrePromotionAnalysis}
	case StagePause:
		if waitsForPromotion(bg) {
			return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
		}
		seconds := intstr.FromInt32(bg.AutoPromotionSeconds)
		return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: &seconds}}
	case StagePost:
		return v1alpha1.CanaryStep{Analysis: bg.PostPromotionAnalysis}
	}
	whole := int32(routers.MaxWeight)
	return v1alpha1.CanaryStep{SetWeight: &whole}
}

// asCanary is what was observed of a blue-green Rollout as the canary's loop sees it.
func asCanary(in In) In {
	bg := *in.Spec.Strategy.BlueGreen
	none := intstr.FromInt32(0)
	compiled := &v1alpha1.CanaryStrategy{
		StableService: bg.ActiveService, CanaryService: bg.PreviewService,
		// Both versions are whole around the switch: nothing may be missing, and all
		// pods of the new one start at once.
		MaxUnavailable:              &none,
		ScaleDownDelaySeconds:       bg.ScaleDownDelaySeconds,
		ScaleDownDelayRevisionLimit: bg.ScaleDownDelayRevisionLimit,
		AbortScaleDownDelaySeconds:  bg.AbortScaleDownDelaySeconds,
	}
	compiled.Steps = StageSteps(bg)
	in.Spec.Strategy.Canary = compiled
	in.Runs = stepRuns(in.Runs)
	in.Routing = activeRouting(in)
	in.Stable, in.Canary = sides(in)
	return in
}

// stageAt is the stage at an index; empty after the last one and for a canary.
func stageAt(in In, i int32) Stage {
	if in.Spec.Strategy.BlueGreen == nil {
		return ""
	}
	stages := Stages(*in.Spec.Strategy.BlueGreen)
	if i < 0 || int(i) >= len(stages) {
		return ""
	}
	return stages[i]
}

// switchIndex is the index of the switch.
func switchIndex(bg v1alpha1.BlueGreenStrategy) int32 {
	for i, stage := range Stages(bg) {
		if stage == StageSwitch {
			return int32(i)
		}
	}
	return 0 // there always is one
}

// previewing says that a version is in a stage before the switch.
func previewing(in In, st v1alpha1.RolloutStatus) bool {
	bg := in.Spec.Strategy.BlueGreen
	return bg != nil && inProgress(st) && index(st) < switchIndex(*bg)
}

// diverted says that the active Service selects another version than the stable one.
func diverted(in In) bool {
	active, st := serviceHash(in.Active), in.Status
	if active == "" || active == st.StableRS {
		return false
	}
	return st.StableRS != "" || active == st.CurrentPodHash
}

// activeRouting is the active Service as a routing object.
func activeRouting(in In) *Routing {
	if in.Active == nil {
		return &Routing{Err: "the active Service " + in.Spec.Strategy.BlueGreen.ActiveService + " does not exist"}
	}
	out := &Routing{Observed: routers.Observed{Stable: routers.MaxWeight, Uniform: true, Verification: activeReaches(in)}}
	if diverted(in) {
		out.Stable, out.Canary = 0, routers.MaxWeight
	}
	if out.Verification == routers.VerificationPending {
		out.Message = "the endpoints of the active Service are not those of the version that it selects yet"
	}
	return out
}

// activeReaches: a selector is carried out when the endpoints are of its version
// alone, and some are ready if any pod is. One without a hash is to be the stable
// version's, as soon as that has pods.
func activeReaches(in In) routers.Verification {
	active, wanted := in.Active, serviceHash(in.Active)
	if wanted == "" && available(find(in, in.Status.StableRS)) > 0 {
		wanted = in.Status.StableRS
	}
	if wanted == "" || active.ReadyHashes == nil {
		return routers.VerificationUnknown
	}
	for hash, count := range active.ReadyHashes {
		if hash != wanted && hash != "" && count > 0 {
			return routers.VerificationPending
		}
	}
	reached := active.ReadyHashes[wanted] + active.ReadyHashes[""]
	if reached == 0 && available(find(in, wanted)) > 0 {
		return routers.VerificationPending
	}
	return routers.VerificationUnknown // not Verified: at rest nobody looks
}

// sides are the Services of the two sides. One without a name is nobody's: what
// is wanted of it is not written.
func sides(in In) (stable, canary *Service) {
	if diverted(in) {
		return &Service{Name: in.Active.Name, Hash: in.Status.StableRS},
			&Service{Hash: in.Active.Hash, ReadyHashes: in.Active.ReadyHashes}
	}
	return in.Active, previewSide(in)
}

// previewSide is the preview Service. Where there is none, and where a version
// comes back that has served already, nothing waits for it.
func previewSide(in In) *Service {
	st := in.Status
	nobody := &Service{Hash: st.StableRS}
	if inProgress(st) {
		nobody.Hash = st.CurrentPodHash
	}
	comesBack := inProgress(st) && stageAt(in, index(st)) == StageSwitch && proven(in, st.CurrentPodHash)
	if in.Preview == nil || comesBack && in.Preview.Hash != st.CurrentPodHash {
		return nobody
	}
	return in.Preview
}

// proven says that a version was stable once and still has all the pods that it
// served with.
func proven(in In, hash string) bool {
	rs := find(in, hash)
	return in.Spec.Strategy.BlueGreen != nil && hash != in.Status.StableRS && in.Replicas > 0 &&
		hasServed(rs) && available(rs) >= in.Replicas
}

// hasServed says that a ReplicaSet is marked as one that is or was stable.
func hasServed(rs *ReplicaSet) bool {
	return rs != nil && (rs.Role == v1alpha1.RoleStable || rs.Role == v1alpha1.RoleRetired)
}

// firstIndex is the stage that a new attempt begins with: the switch, when its
// version comes back within scaleDownDelaySeconds (Argo 2.10).
func firstIndex(in In, st v1alpha1.RolloutStatus, hash string) int32 {
	if bg := in.Spec.Strategy.BlueGreen; bg != nil && st.StableRS != "" && st.StableRS != hash && proven(in, hash) {
		return switchIndex(*bg)
	}
	return 0
}

// previewSize is how many pods a version has before the switch.
func previewSize(in In, whole int32) int32 {
	if count := in.Spec.Strategy.BlueGreen.PreviewReplicaCount; count != nil && whole > 0 {
		return *count
	}
	return whole
}

// previewReached says that the preview Service leads to the version in progress
// alone: only then is what it gives an answer of that version (C55).
func previewReached(in In, st v1alpha1.RolloutStatus) bool {
	return in.Preview == nil || !previewing(in, st) || serves(in.Preview, st.CurrentPodHash)
}
