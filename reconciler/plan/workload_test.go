package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// migration is a Deployment and the Rollout of one version that takes over from
// it, with what a cluster makes of plans.
type migration struct {
	in plan.In
	// gone is true when the Rollout was let go.
	gone bool
	// served are the least pods that were available since it began.
	served int32
	events []string
}

const since = 1_000_000

// newMigration has a Deployment of some pods, all available, and a Rollout without any.
func newMigration(mode string, old, replicas int32) *migration {
	m := &migration{in: plan.In{
		Now: time.Unix(since, 0), Namespace: "shop", Name: "web", Generation: 1, Replicas: replicas,
		Template: plan.Template{Hash: "v1"},
		Spec: v1alpha1.RolloutSpec{
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:    &runtime.RawExtension{Raw: []byte("{}")},
			WorkloadRef: &v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "old", ScaleDown: mode},
			Strategy:    v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{}},
		},
		Workloads: []plan.Workload{{Kind: "Deployment", Name: "old", Current: true, Generation: 1, Desired: old, Available: old, Observed: true}},
	}}
	m.served = old
	return m
}

func (m *migration) old() *plan.Workload { return &m.in.Workloads[0] }

func (m *migration) pods() int32 {
	pods := int32(0)
	for _, w := range m.in.Workloads {
		pods += w.Available
	}
	for _, rs := range m.in.ReplicaSets {
		pods += rs.Available
	}
	return pods
}

// pass decides and carries out the first effects of the plan; all of them with a
// large number. It returns how many there were.
func (m *migration) pass(effects int) int {
	m.in.Now = m.in.Now.Add(time.Second)
	p := plan.Decide(m.in)
	done := 0
	do := func(effect func()) {
		if done < effects && !m.gone {
			effect()
		}
		done++
	}
	for _, want := range p.ReplicaSets {
		do(func() { m.size(want) })
	}
	do(func() { m.in.Status = p.Status })
	for _, want := range p.Workloads {
		do(func() { m.sizeOld(want) })
	}
	if p.Finalizer != "" {
		do(func() {
			m.in.Finalizer = p.Finalizer == plan.FinalizerAdd
			m.gone = m.in.Deleting && !m.in.Finalizer
		})
	}
	if !m.in.Deleting || m.in.Finalizer {
		m.served = min(m.served, m.pods())
	}
	for _, e := range p.Events {
		m.events = append(m.events, e.Message)
	}
	return done
}

func (m *migration) size(want plan.ReplicaSetWant) {
	if want.Create {
		m.in.ReplicaSets = append(m.in.ReplicaSets, plan.ReplicaSet{Name: "web-" + want.Hash, Hash: want.Hash, Created: m.in.Now, Observed: true})
	}
	for i := range m.in.ReplicaSets {
		rs := &m.in.ReplicaSets[i]
		if rs.Hash != want.Hash {
			continue
		}
		rs.Desired, rs.Replicas, rs.Revision, rs.Role = want.Replicas, want.Replicas, want.Revision, want.Role
		rs.Ready, rs.Available = min(rs.Ready, rs.Desired), min(rs.Available, rs.Desired)
	}
}

func (m *migration) sizeOld(want plan.WorkloadWant) {
	w := m.old()
	w.Generation++
	w.Desired, w.Hold = want.Replicas, want.Hold
	w.Available = min(w.Available, w.Desired) // those that aren't ready go first
}

// start makes one more pod available, of the Rollout or else of the Deployment.
func (m *migration) start() {
	for i := range m.in.ReplicaSets {
		if rs := &m.in.ReplicaSets[i]; rs.Available < rs.Desired {
			rs.Ready, rs.Available = rs.Ready+1, rs.Available+1
			return
		}
	}
	m.startOld()
}

func (m *migration) startOld() {
	if w := m.old(); w.Available < w.Desired {
		w.Available++
	}
}

func (m *migration) settle() {
	for range 60 {
		m.pass(1000)
		m.start()
	}
}

func TestScaleDown(t *testing.T) {
	type state struct {
		desired int32
		hold    *plan.WorkloadHold
	}
	held := func(desired, original, set int32) state {
		return state{desired, &plan.WorkloadHold{Original: original, Set: set}}
	}
	never, success, progress := v1alpha1.ScaleDownNever, v1alpha1.ScaleDownOnSuccess, v1alpha1.ScaleDownProgressively
	for name, c := range map[string]struct {
		mode      string
		replicas  int32
		available int32
		settled   bool // Healthy, as persisted
		scaler    string
		change    func(*plan.In)
		was, want state
	}{
		"never leaves it":                                {mode: never, replicas: 5, available: 5, settled: true, was: state{desired: 5}, want: state{desired: 5}},
		"the default is never":                           {mode: "", replicas: 5, available: 5, settled: true, was: state{desired: 5}, want: state{desired: 5}},
		"never gives back":                               {mode: never, replicas: 5, available: 5, settled: true, was: held(0, 3, 0), want: state{desired: 3}},
		"never gives back in the middle":                 {mode: never, replicas: 5, available: 2, was: held(1, 3, 1), want: state{desired: 3}},
		"on success waits":                               {mode: success, replicas: 5, available: 4, was: state{desired: 5}, want: state{desired: 5}},
		"on success goes to 0":                           {mode: success, replicas: 5, available: 5, settled: true, was: state{desired: 5}, want: held(0, 5, 0)},
		"a size that was raised goes down again":         {mode: success, replicas: 5, available: 5, settled: true, was: held(7, 5, 0), want: held(0, 7, 0)},
		"and waits for success":                          {mode: success, replicas: 5, available: 4, was: held(7, 5, 0), want: held(7, 7, 7)},
		"at 0 it stays":                                  {mode: success, replicas: 5, available: 1, was: held(0, 5, 0), want: held(0, 5, 0)},
		"of nobody's at 0 nothing is noted":              {mode: success, replicas: 5, available: 5, settled: true, was: state{desired: 0}, want: state{desired: 0}},
		"progressively, none is available":               {mode: progress, replicas: 5, available: 0, was: state{desired: 5}, want: state{desired: 5}},
		"progressively, some are":                        {mode: progress, replicas: 5, available: 2, was: state{desired: 5}, want: held(3, 5, 3)},
		"progressively, all are":                         {mode: progress, replicas: 5, available: 5, was: held(1, 5, 1), want: held(0, 5, 0)},
		"progressively, a pod was lost":                  {mode: progress, replicas: 5, available: 2, was: held(1, 5, 1), want: held(3, 5, 3)},
		"progressively, to a smaller Rollout":            {mode: progress, replicas: 2, available: 2, was: state{desired: 5}, want: held(3, 5, 3)},
		"progressively, healthy with less":               {mode: progress, replicas: 2, available: 2, settled: true, was: held(3, 5, 3), want: held(0, 5, 0)},
		"progressively, to a larger one":                 {mode: progress, replicas: 9, available: 7, was: state{desired: 5}, want: held(0, 5, 0)},
		"beside a scaler, not bit by bit":                {mode: progress, scaler: "HorizontalPodAutoscaler hpa", replicas: 5, available: 2, was: state{desired: 5}, want: state{desired: 5}},
		"beside a scaler, when healthy":                  {mode: progress, scaler: "HorizontalPodAutoscaler hpa", replicas: 5, available: 5, settled: true, was: state{desired: 5}, want: held(0, 5, 0)},
		"a Rollout without pods takes over nothing":      {mode: success, replicas: 0, settled: true, was: state{desired: 5}, want: state{desired: 5}},
		"under an unusable spec nothing moves":           {mode: progress, replicas: 5, available: 3, was: state{desired: 5}, want: state{desired: 5}, change: func(in *plan.In) { in.Invalid = []string{"spec: no"} }},
		"while something is missing nothing moves":       {mode: progress, replicas: 5, available: 3, was: state{desired: 5}, want: state{desired: 5}, change: func(in *plan.In) { in.Missing = []string{"it"} }},
		"while paused nothing moves":                     {mode: progress, replicas: 5, available: 3, was: state{desired: 5}, want: state{desired: 5}, change: func(in *plan.In) { in.Spec.Paused = true }},
		"one that is gone is left alone":                 {mode: never, replicas: 5, available: 5, settled: true, was: held(0, 3, 0), want: held(0, 3, 0), change: func(in *plan.In) { in.Workloads[0].Gone = true }},
		"one that is named no more gets its size":        {mode: success, replicas: 5, available: 5, settled: true, was: held(0, 3, 0), want: state{desired: 3}, change: func(in *plan.In) { in.Workloads[0].Current = false }},
		"the status that says Healthy must be persisted": {mode: success, replicas: 5, available: 5, was: state{desired: 5}, want: state{desired: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMigration(c.mode, c.was.desired, c.replicas)
			m.in.Workloads = nil
			m.pass(1000) // the first version is created
			if c.settled {
				m.settleRollout()
			}
			for i := range m.in.ReplicaSets {
				m.in.ReplicaSets[i].Available, m.in.ReplicaSets[i].Ready = c.available, c.available
			}
			m.in.Workloads = []plan.Workload{{Kind: "Deployment", Name: "old", Current: true, Desired: c.was.desired, Observed: true, Hold: c.was.hold, Scaler: c.scaler}}
			m.in.Finalizer = true
			if c.change != nil {
				c.change(&m.in)
			}
			m.pass(1000)
			if diff := cmp.Diff(c.want, state{m.old().Desired, m.old().Hold}, cmp.AllowUnexported(state{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// settleRollout brings the Rollout to Healthy without a workload.
func (m *migration) settleRollout() {
	for range 30 {
		m.pass(1000)
		for i := range m.in.ReplicaSets {
			rs := &m.in.ReplicaSets[i]
			rs.Ready, rs.Available = rs.Desired, rs.Desired
		}
	}
}

// The finalizer is there before the first size is changed, and until after the last.
func TestTheFinalizerOfAWorkload(t *testing.T) {
	m := newMigration(v1alpha1.ScaleDownOnSuccess, 3, 3)
	for range 60 {
		held := m.old().Hold != nil
		if held && !m.in.Finalizer {
			t.Fatal("the Deployment was scaled down, and nothing holds the Rollout")
		}
		m.pass(1000)
		m.start()
	}
	if !m.in.Finalizer || m.old().Desired != 0 {
		t.Fatalf("finalizer %t, the Deployment is %+v", m.in.Finalizer, m.old())
	}
	m.in.Spec.WorkloadRef.ScaleDown = v1alpha1.ScaleDownNever
	m.settle()
	if m.in.Finalizer || m.old().Desired != 3 || m.old().Hold != nil {
		t.Errorf("finalizer %t, the Deployment is %+v", m.in.Finalizer, m.old())
	}
	if n := m.pass(1000); n != 1 {
		t.Errorf("%d effects at rest", n)
	}
}

func TestFarewell(t *testing.T) {
	m := newMigration(v1alpha1.ScaleDownOnSuccess, 3, 5)
	m.settle()
	m.in.Deleting = true
	m.in.Stable = &plan.Service{Name: "web-stable", Hash: "v1"}
	m.in.Leaving = &plan.Leaving{Objects: "Service web-stable"}
	m.pass(1000)
	if m.old().Desired != 5 || m.old().Hold == nil {
		t.Fatalf("the Deployment is %+v, want the Rollout's 5 pods", m.old())
	}
	for range 4 {
		m.startOld()
		m.pass(1000)
		if p := plan.Decide(m.in); len(p.Services) > 0 || m.gone {
			t.Fatal("it goes before all pods of the Deployment are available")
		}
	}
	if want := "waiting until Deployment old, which it has scaled down, serves again (4 of 5 pods are available)"; !strings.Contains(m.in.Status.Message, want) {
		t.Errorf("the message is %q", m.in.Status.Message)
	}
	m.startOld()
	p := plan.Decide(m.in)
	if diff := cmp.Diff([]plan.ServiceWant{{Name: "web-stable"}}, p.Services); diff != "" {
		t.Errorf("Services:\n%s", diff)
	}
	m.in.Stable, m.in.Leaving = nil, nil
	m.settle()
	if !m.gone || m.old().Hold != nil {
		t.Errorf("gone %t, the Deployment is %+v", m.gone, m.old())
	}

	m = newMigration(v1alpha1.ScaleDownOnSuccess, 3, 5)
	m.settle()
	m.in.Deleting, m.old().Gone = true, true
	m.pass(1000)
	if !m.gone {
		t.Error("a Rollout waits for a Deployment that is gone")
	}
}

// Whatever breaks off when: there are never fewer pods by our doing than the
// smaller of both sizes, and it ends where it should.
func TestScaleDownProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]string{v1alpha1.ScaleDownOnSuccess, v1alpha1.ScaleDownProgressively}).Draw(t, "mode")
		old, replicas := rapid.Int32Range(1, 6).Draw(t, "old"), rapid.Int32Range(1, 6).Draw(t, "replicas")
		m := newMigration(mode, old, replicas)
		none, one := intstr.FromInt32(0), intstr.FromInt32(1)
		m.in.Spec.Strategy.Canary.MaxUnavailable, m.in.Spec.Strategy.Canary.MaxSurge = &none, &one
		original := old
		for range rapid.IntRange(5, 80).Draw(t, "events") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0, 1, 2, 3:
				m.pass(1000)
			case 4, 5:
				m.pass(rapid.IntRange(0, 3).Draw(t, "effects")) // and it is killed
			case 8:
				if m.in.Template.Hash == "v1" { // a newer template in the middle
					m.in.Template.Hash = "v2"
				}
			case 9:
				if raised := rapid.Int32Range(1, 7).Draw(t, "raised"); raised > m.old().Desired {
					m.old().Desired = raised // by a sync
					original = raised
				}
			default:
				m.start()
			}
			if least := min(old, replicas); m.served < least {
				t.Fatalf("%d pods were available, fewer than %d of the Deployment and %d of the Rollout", m.served, old, replicas)
			}
		}
		m.settle()
		if w := m.old(); w.Desired != 0 {
			t.Fatalf("in the end the Deployment is %+v", w)
		}
		if n := m.pass(1000); n != 1 {
			t.Fatalf("%d effects at rest", n)
		}
		m.in.Deleting, m.served = true, m.pods()
		for range rapid.IntRange(0, 30).Draw(t, "more") {
			m.pass(rapid.IntRange(0, 3).Draw(t, "effects"))
			if m.gone {
				break
			}
			m.startOld()
		}
		m.settle()
		if least := min(old, replicas); !m.gone || m.served < least || m.old().Available < replicas || m.old().Hold != nil {
			t.Fatalf("gone %t, served %d of %d, the Deployment is %+v (it had %d)", m.gone, m.served, least, m.old(), original)
		}
	})
}

// The stable Service selects the pods of both until the Rollout has enough of its
// own, so that a migration takes no pod from the traffic beyond maxUnavailable.
func TestTheStableServiceDuringAMigration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]string{v1alpha1.ScaleDownOnSuccess, v1alpha1.ScaleDownProgressively}).Draw(t, "mode")
		old, replicas := rapid.Int32Range(1, 8).Draw(t, "old"), rapid.Int32Range(1, 8).Draw(t, "replicas")
		m := newMigration(mode, old, replicas)
		serves := &plan.Service{Name: "web-stable"}
		least := min(old, replicas-replicas/4)
		if rapid.Bool().Draw(t, "blueGreen") {
			serves.Name, least = "web-active", min(old, replicas)
			m.in.Spec.Strategy = v1alpha1.RolloutStrategy{BlueGreen: &v1alpha1.BlueGreenStrategy{ActiveService: serves.Name}}
			m.in.Active = serves
		} else {
			canary := withRouter(setWeight(20), pause(0))
			m.in.Spec.Strategy.Canary = &canary
			m.in.Routing = &plan.Routing{Observed: routers.Observed{Stable: 100, Uniform: true, Verification: routers.Verified}}
			m.in.Stable, m.in.Canary = serves, &plan.Service{Name: "web-canary"}
		}
		for i := range 100 {
			p := plan.Decide(m.in)
			for _, want := range p.Services {
				if serves.Name == want.Name {
					serves.Hash = want.Hash
				}
			}
			m.pass(1000)
			serving := m.pods()
			if serves.Hash != "" {
				serving -= m.old().Available
			}
			if serving < least {
				t.Fatalf("%s has %d pods, fewer than %d; the Deployment is %+v, the Rollout %+v", serves.Name, serving, least, m.old(), m.in.ReplicaSets)
			}
			if i > 50 || rapid.Bool().Draw(t, "starts") {
				m.start()
			}
		}
		if serves.Hash != "v1" || m.old().Desired != 0 {
			t.Fatalf("in the end %s selects %q, and the Deployment is %+v", serves.Name, serves.Hash, m.old())
		}
	})
}

func TestTwoScalersAreSaid(t *testing.T) {
	for mode, want := range map[string]bool{v1alpha1.ScaleDownProgressively: true, v1alpha1.ScaleDownOnSuccess: true, v1alpha1.ScaleDownNever: false} {
		m := newMigration(mode, 3, 3)
		m.old().Scaler = "HorizontalPodAutoscaler hpa"
		m.settle()
		found := false
		for _, c := range m.in.Status.Conditions {
			found = found || c.Type == v1alpha1.WorkloadHasScalerCondition && strings.Contains(c.Message, "HorizontalPodAutoscaler hpa sizes Deployment old")
		}
		if found != want {
			t.Errorf("%s: conditions are %+v", mode, m.in.Status.Conditions)
		}
	}
}
