package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var begin0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// lab is a cluster of one Experiment, with a clock.
type lab struct {
	now    time.Time
	spec   v1alpha1.ExperimentSpec
	status v1alpha1.ExperimentStatus

	sets     map[string]Set
	services map[string]bool
	runs     map[string]Run
	started  map[string]time.Time

	// slow versions become available after so long; those below 0 never.
	slow map[string]time.Duration
	// verdicts of analyses, and when after their start.
	verdicts map[string]verdict
	routed   bool
	missing  []string
	invalid  []string

	// stale is what a cache shows; nil shows what is.
	stale *lab
	// crash says whether the write with this number is refused, and the pass with it.
	crash func(write int) bool
	write int
	log   []string
	// broken are rules that were broken on the way.
	broken []string
}

type verdict struct {
	after time.Duration
	phase v1alpha1.AnalysisPhase
}

func newLab(spec v1alpha1.ExperimentSpec) *lab {
	return &lab{now: begin0, spec: spec, sets: map[string]Set{}, services: map[string]bool{}, runs: map[string]Run{},
		started: map[string]time.Time{}, slow: map[string]time.Duration{}, verdicts: map[string]verdict{}}
}

func (l *lab) shot() *lab {
	return &lab{sets: maps.Clone(l.sets), services: maps.Clone(l.services), runs: maps.Clone(l.runs)}
}

func (l *lab) in() In {
	seen := l
	if l.stale != nil {
		seen = l.stale
	}
	hashes := map[string]string{}
	for _, t := range l.spec.Templates {
		hashes[t.Name] = Hash("exp", t.Name, "0123456789")
	}
	hash, err := SpecHash(l.spec, hashes)
	if err != nil {
		panic(err)
	}
	return In{Now: l.now, Name: "exp", Generation: 1, Spec: l.spec, Status: l.status, SpecHash: hash, Hashes: hashes,
		Missing: l.missing, Invalid: l.invalid, Routed: l.routed,
		Sets: maps.Clone(seen.sets), Services: maps.Clone(seen.services), Runs: maps.Clone(seen.runs)}
}

func (l *lab) say(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%5s  ", l.now.Sub(begin0))+fmt.Sprintf(format, args...))
}

// effect makes one write, unless it is refused.
func (l *lab) effect(does func()) bool {
	l.write++
	if l.crash != nil && l.crash(l.write) {
		return false
	}
	does()
	return true
}

// pass decides and carries out; the wake time comes back.
func (l *lab) pass() time.Duration {
	p := Decide(l.in())
	again := Decide(l.in())
	if !reflect.DeepEqual(p, again) {
		l.broken = append(l.broken, "two decisions on the same input differ")
	}
	var writes []func()
	for _, s := range p.Sets {
		live, exists := l.sets[s.Template]
		if s.Create == exists {
			return time.Second // a stale read: the API server refuses it
		}
		if l.stale != nil && exists && l.stale.sets[s.Template] != live {
			return time.Second
		}
		writes = append(writes, func() {
			live.Desired, live.Observed = s.Replicas, false
			l.sets[s.Template] = live
			l.started["set "+s.Template] = l.now
			l.say("%s", s.Why)
		})
	}
	for _, name := range p.Services {
		if !l.services[name] {
			writes = append(writes, func() { l.services[name] = true; l.say("Service for %s", name) })
		}
	}
	if !equality.Semantic.DeepEqual(p.Status, l.status) {
		writes = append(writes, func() {
			l.note(p.Status)
			l.status = p.Status
		})
	}
	for _, r := range p.Runs {
		if _, exists := l.runs[r.Analysis]; exists {
			continue
		}
		writes = append(writes, func() {
			l.runs[r.Analysis] = Run{Phase: v1alpha1.AnalysisPhaseRunning}
			l.started["run "+r.Analysis] = l.now
			l.say("AnalysisRun %s, available at %s", r.Analysis, r.AvailableAt.Sub(begin0))
		})
	}
	for _, name := range p.Terminate {
		writes = append(writes, func() {
			run := l.runs[name]
			if !run.Terminating {
				l.say("end of AnalysisRun %s is asked for", name)
			}
			run.Terminating = true
			l.runs[name] = run
		})
	}
	for _, name := range p.DropServices {
		writes = append(writes, func() { delete(l.services, name); l.say("Service of %s is deleted", name) })
	}
	for _, w := range writes {
		if !l.effect(w) {
			return time.Second
		}
	}
	return p.WakeAfter
}

// note tells of a status, and checks what may never happen.
func (l *lab) note(next v1alpha1.ExperimentStatus) {
	if l.status.Phase.Completed() && next.Phase != l.status.Phase && len(l.status.TemplateStatuses) > 0 {
		l.broken = append(l.broken, fmt.Sprintf("the verdict %s became %s", l.status.Phase, next.Phase))
	}
	if l.status.AvailableAt != nil && !l.status.AvailableAt.Equal(next.AvailableAt) {
		l.broken = append(l.broken, "the clock was started twice")
	}
	if next.Phase == v1alpha1.AnalysisPhaseSuccessful {
		for _, a := range l.spec.Analyses {
			if run := l.runs[a.Name]; run.Phase != v1alpha1.AnalysisPhaseSuccessful {
				l.broken = append(l.broken, fmt.Sprintf("Successful with the analysis %s %q", a.Name, run.Phase))
			}
		}
	}
	if next.Phase != l.status.Phase || next.Message != l.status.Message {
		l.say("%s: %s", next.Phase, next.Message)
	}
	was := map[string]v1alpha1.TemplateStatusCode{}
	for _, t := range l.status.TemplateStatuses {
		was[t.Name] = t.Status
	}
	for _, t := range next.TemplateStatuses {
		if t.Status != was[t.Name] {
			l.say("template %s %s", t.Name, t.Status)
		}
	}
}

// tick lets the cluster do its part.
func (l *lab) tick(by time.Duration) {
	l.now = l.now.Add(by)
	for name, set := range l.sets {
		set.Observed, set.Replicas = true, set.Desired
		slow := l.slow[name]
		set.Ready, set.Available = 0, 0
		if slow >= 0 && !l.now.Before(l.started["set "+name].Add(slow)) {
			set.Ready, set.Available = set.Desired, set.Desired
		}
		l.sets[name] = set
	}
	for name, run := range l.runs {
		if run.Phase.Completed() {
			continue
		}
		v := l.verdicts[name]
		run.Measured = !l.now.Before(l.started["run "+name].Add(2 * time.Second))
		switch {
		case v.phase != "" && !l.now.Before(l.started["run "+name].Add(v.after)):
			run.Phase, run.Message = v.phase, "by its metric"
		case run.Terminating && run.Measured:
			run.Phase = v1alpha1.AnalysisPhaseSuccessful
		case run.Terminating:
			run.Phase, run.Message = v1alpha1.AnalysisPhaseInconclusive, "ended unmeasured"
		}
		l.runs[name] = run
	}
}

// play makes passes, one each second, until the time is over.
func (l *lab) play(length time.Duration) {
	for end := l.now.Add(length); l.now.Before(end); l.tick(time.Second) {
		l.pass()
	}
}

func (l *lab) transcript() string { return strings.Join(l.log, "\n") + "\n" }

// end is what an Experiment comes to, without times.
func (l *lab) end() string {
	var out []string
	out = append(out, fmt.Sprintf("%s: %s", l.status.Phase, l.status.Message))
	for _, t := range l.status.TemplateStatuses {
		out = append(out, fmt.Sprintf("%s %s %d pods, service %v", t.Name, t.Status, l.sets[t.Name].Replicas, l.services[t.Name]))
	}
	for _, r := range l.status.AnalysisRuns {
		out = append(out, fmt.Sprintf("%s %s", r.Name, r.Phase))
	}
	slices.Sort(out[1:])
	return strings.Join(out, "\n")
}
