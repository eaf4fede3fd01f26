package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// claims are what may want to decide at the same time about v2, which is at a
// pause with 20 % of the traffic; in the order of law 8. Each shows by what it
// does when it is alone.
var claims = []struct {
	name  string
	raise func(*plan.In)
	shows string
}{
	{"an abort", func(in *plan.In) {
		in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
	}, "aborted, weight 0"},
	{"a pause", func(in *plan.In) { in.Spec.Paused = true }, "frozen"},
	{"Held", func(in *plan.In) {
		in.Template.Hash = "v9"
		in.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: "v9", Attempt: 1, Reason: v1alpha1.AbortFailed, Revert: v1alpha1.RevertObserved}}
	}, "held, weight 0"},
	{"a newer template", func(in *plan.In) { in.Template.Hash = "v3" }, "v3 at 0, weight 0"},
	{"the end of the step's pause", func(in *plan.In) {
		started := metav1.NewTime(in.Now.Add(-3600e9))
		in.Status.StepStartedAt = &started
	}, "step 2"},
}

func shown(p plan.Plan) string {
	st := p.Status
	zero := ""
	if p.Split != nil && p.Split.Canary == 0 {
		zero = ", weight 0"
	}
	held := false
	for _, c := range st.Conditions {
		held = held || c.Type == v1alpha1.HeldCondition
	}
	switch {
	case st.Abort:
		return "aborted" + zero
	case st.CurrentPodHash == "v3":
		return "v3 at 0" + zero
	case st.CurrentPodHash == st.StableRS && held:
		return "held" + zero
	case st.CurrentStepIndex != nil && *st.CurrentStepIndex == 2:
		return "step 2"
	case st.Message == "manually paused":
		return "frozen"
	}
	return "nothing"
}

// TestLaw8_Precedence: of every pair, the earlier one wins.
func TestLaw8_Precedence(t *testing.T) {
	base := func() plan.In {
		return observe(paused(t, withRouter(setWeight(20), pause(30), setWeight(60), pause(0)), 1))
	}
	for i, first := range claims {
		for j, second := range claims {
			if j < i {
				continue
			}
			t.Run(first.name+" and "+second.name, func(t *testing.T) {
				in := base()
				second.raise(&in)
				first.raise(&in)
				if got := shown(plan.Decide(in)); got != first.shows {
					// Held needs its own template; with a newer one there is nothing to hold.
					t.Errorf("shows %q, want %q", got, first.shows)
				}
			})
		}
	}
}

// An abort comes before every reason to wait, and a failed run is one.
func TestLaw8_AFailedRunAbortsWhateverElseHolds(t *testing.T) {
	for name, also := range map[string]func(*plan.In){
		"alone":           func(*plan.In) {},
		"paused":          func(in *plan.In) { in.Spec.Paused = true },
		"missing":         func(in *plan.In) { in.Missing = []string{"AnalysisTemplate shop/success-rate"} },
		"invalid":         func(in *plan.In) { in.Invalid = []string{"spec.strategy: no"} },
		"promote":         func(in *plan.In) { in.Verbs = map[string]string{v1alpha1.PromoteAnnotation: "v2/1/x"} },
		"router in error": func(in *plan.In) { in.Routing = &plan.Routing{Err: "timeout"} },
		"inconclusive too": func(in *plan.In) {
			in.Runs = append(in.Runs, plan.Run{Name: "i", Kind: plan.RunBackground, Hash: "v2", Attempt: 2, Phase: v1alpha1.AnalysisPhaseInconclusive})
		},
		"an error too": func(in *plan.In) {
			in.Runs = append(in.Runs, plan.Run{Name: "e", Kind: plan.RunBackground, Hash: "v2", Attempt: 2, Phase: v1alpha1.AnalysisPhaseError})
		},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(setWeight(20), analyse())
			strategy.Analysis = background(0)
			c := cluster(strategy)
			c.Verdict = func(plan.Run) plansim.Script { return plansim.Script{} }
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 60, "the analysis", atStep("v2", 1))
			in := observe(c)
			in.Runs = []plan.Run{{Name: "web-v2-2-1", Kind: plan.RunStep, Hash: "v2", Attempt: 2, Step: 1, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail}}
			also(&in)
			p := plan.Decide(in)
			if name == "promote" {
				// The person's word skips the step, and with it its verdict.
				if p.Status.Abort || *p.Status.CurrentStepIndex != 2 {
					t.Errorf("status %q", summary(p.Status))
				}
				return
			}
			if !p.Status.Abort || p.Status.AbortReason != v1alpha1.AbortFailed || p.Status.AbortMessage != detail || p.Split == nil || p.Split.Canary != 0 {
				t.Errorf("status %q for %q (%s), split %+v", summary(p.Status), p.Status.AbortReason, p.Status.AbortMessage, p.Split)
			}
		})
	}
}
