package analysis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var t0 = time.Date(2026, 8, 17, 10, 0, 0, 0, time.UTC)

const (
	success      = v1alpha1.AnalysisPhaseSuccessful
	failed       = v1alpha1.AnalysisPhaseFailed
	inconclusive = v1alpha1.AnalysisPhaseInconclusive
	errored      = v1alpha1.AnalysisPhaseError
	running      = v1alpha1.AnalysisPhaseRunning
	pending      = v1alpha1.AnalysisPhasePending
)

// phasesOf reads S, F, I and E.

func phasesOf(letters string) []v1alpha1.AnalysisPhase {
	var out []v1alpha1.AnalysisPhase
	for _, l := range letters {
		out = append(out, map[rune]v1alpha1.AnalysisPhase{'S': success, 'F': failed, 'I': inconclusive, 'E': errored}[l])
	}
	return out
}

func limit(n int32) *intstr.IntOrString {
	v := intstr.FromInt32(n)
	return &v
}

func prepare(t interface {
	Helper()
	Fatal(...any)
}, spec v1alpha1.AnalysisRunSpec) Prepared {
	t.Helper()
	p, err := Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// play measures whatever is due, with the phases given to each metric in turn, until

// nothing is due any more or the phases run out. It moves the clock to each wake-up.

func play(p Prepared, phases map[string][]v1alpha1.AnalysisPhase) (v1alpha1.AnalysisRunStatus, time.Time) {
	now := t0
	status := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, now)
	for {
		after, ok := p.Wake(status, now)
		if !ok {
			return status, now
		}
		now = now.Add(after)
		var measured []Measured
		for _, task := range p.Due(status, now) {
			left := phases[task.Metric]
			if len(left) == 0 {
				return status, now
			}
			phases[task.Metric] = left[1:]
			measured = append(measured, Measured{
				Task: task, Phase: left[0], Started: now,
				Message: "said " + string(left[0]), Value: fmt.Sprint(task.Number),
			})
		}
		status = p.Fold(status, measured, now)
	}
}

func TestAssessMetric(t *testing.T) {
	for name, tc := range map[string]struct {
		metric  v1alpha1.Metric
		phases  string
		want    v1alpha1.AnalysisPhase
		message string
	}{
		"one success":              {v1alpha1.Metric{}, "S", success, ""},
		"one failure":              {v1alpha1.Metric{}, "F", failed, "failed (1) > failureLimit (0)"},
		"one inconclusive":         {v1alpha1.Metric{}, "I", inconclusive, "inconclusive (1) > inconclusiveLimit (0)"},
		"an error is retried":      {v1alpha1.Metric{}, "ES", success, ""},
		"four errors are":          {v1alpha1.Metric{}, "EEEES", success, ""},
		"five errors are not":      {v1alpha1.Metric{}, "EEEEE", errored, "consecutiveErrors (5) > consecutiveErrorLimit (4)"},
		"errors don't count":       {v1alpha1.Metric{Count: limit(2), Interval: "1s"}, "SEES", success, ""},
		"errors in a row only":     {v1alpha1.Metric{Count: limit(3), Interval: "1s", ConsecutiveErrorLimit: limit(1)}, "ESESES", success, ""},
		"error limit 0":            {v1alpha1.Metric{ConsecutiveErrorLimit: limit(0)}, "E", errored, "consecutiveErrors (1) > consecutiveErrorLimit (0)"},
		"failures up to the limit": {v1alpha1.Metric{Count: limit(4), Interval: "1s", FailureLimit: limit(2)}, "FFSS", success, ""},
		"failures over it":         {v1alpha1.Metric{Count: limit(5), Interval: "1s", FailureLimit: limit(2)}, "FSFF", failed, "failed (3) > failureLimit (2)"},
		"all failures tolerated":   {v1alpha1.Metric{Count: limit(3), Interval: "1s", FailureLimit: limit(-1)}, "FFF", success, ""},
		"inconclusive over it":     {v1alpha1.Metric{Count: limit(3), Interval: "1s", InconclusiveLimit: limit(1)}, "SII", inconclusive, "inconclusive (2) > inconclusiveLimit (1)"},
		"unlimited goes on":        {v1alpha1.Metric{Interval: "1s"}, "SSSS", running, ""},
		"unlimited, one bad":       {v1alpha1.Metric{Interval: "1s"}, "SSF", failed, "failed (1) > failureLimit (0)"},
		"count 0 with an interval": {v1alpha1.Metric{Interval: "1s", Count: limit(0)}, "SSS", running, ""},
		"enough in a row":          {v1alpha1.Metric{Interval: "1s", ConsecutiveSuccessLimit: limit(2), FailureLimit: limit(3)}, "SFSS", success, ""},
		"an error breaks the row":  {v1alpha1.Metric{Interval: "1s", ConsecutiveSuccessLimit: limit(2)}, "SES", running, ""},
		"not enough in a row":      {v1alpha1.Metric{Interval: "1s", Count: limit(4), ConsecutiveSuccessLimit: limit(3), FailureLimit: limit(1)}, "SFSS", inconclusive, "consecutiveSuccess (2) < consecutiveSuccessLimit (3) after count (4)"},
		"not enough, tolerated":    {v1alpha1.Metric{Interval: "1s", Count: limit(4), ConsecutiveSuccessLimit: limit(3), FailureLimit: limit(-1)}, "SFSS", failed, "consecutiveSuccess (2) < consecutiveSuccessLimit (3) after count (4)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := promMetric("m", "up")
			m.Interval, m.Count = tc.metric.Interval, tc.metric.Count
			m.FailureLimit, m.InconclusiveLimit = tc.metric.FailureLimit, tc.metric.InconclusiveLimit
			m.ConsecutiveErrorLimit, m.ConsecutiveSuccessLimit = tc.metric.ConsecutiveErrorLimit, tc.metric.ConsecutiveSuccessLimit
			p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
			phases := map[string][]v1alpha1.AnalysisPhase{"m": phasesOf(tc.phases)}
			status, _ := play(p, phases)
			if len(phases["m"]) > 0 {
				t.Errorf("it ended with %v left to measure", phases["m"])
			}
			r := status.MetricResults[0]
			if r.Phase != tc.want || r.Message != tc.message {
				t.Errorf("got %s %q, want %s %q", r.Phase, r.Message, tc.want, tc.message)
			}
			if status.Phase != tc.want {
				t.Errorf("the run is %s, want %s", status.Phase, tc.want)
			}
		})
	}
}

// With several limits exceeded at once, as a raised limit's lowering can leave it,

// Error wins over Inconclusive and that over Failed.

func TestAssessPrecedence(t *testing.T) {
	all := v1alpha1.MetricResult{Failed: 1, Inconclusive: 1, Count: 2, Error: 5, ConsecutiveError: 5, Measurements: []v1alpha1.Measurement{{Phase: errored}}}
	m := prepared{limits: limits{consecutiveError: 4, count: 10}}
	for _, step := range []struct {
		change func()
		want   v1alpha1.AnalysisPhase
	}{
		{func() {}, errored},
		{func() { all.ConsecutiveError = 0 }, inconclusive},
		{func() { all.Inconclusive = 0 }, failed},
		{func() { all.Failed = 0 }, running},
	} {
		step.change()
		if got, message := m.assess(all, false); got != step.want {
			t.Errorf("got %s (%s), want %s", got, message, step.want)
		}
	}
}

func TestRunMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		phases string
		want   v1alpha1.AnalysisPhase
		text   string
	}{
		"failed":  {"F", failed, `Metric "m" assessed Failed due to failed (1) > failureLimit (0)`},
		"error":   {"EEEEE", errored, `Metric "m" assessed Error due to consecutiveErrors (5) > consecutiveErrorLimit (4): "Error Message: said Error"`},
		"success": {"S", success, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: metrics("m")})
			status, _ := play(p, map[string][]v1alpha1.AnalysisPhase{"m": phasesOf(tc.phases)})
			if status.Phase != tc.want || status.Message != tc.text {
				t.Errorf("got %s %q, want %s %q", status.Phase, status.Message, tc.want, tc.text)
			}
			if status.CompletedAt == nil {
				t.Error("there is no completedAt")
			}
		})
	}
}

func TestC37_DryRunsDontDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		names  []string
		dry    string
		phases map[string]string
		want   v1alpha1.AnalysisPhase
		wet    v1alpha1.RunSummary
		dryRun *v1alpha1.RunSummary
	}{
		"dry first, both fail":   {[]string{"dry", "wet"}, "dry", map[string]string{"dry": "F", "wet": "F"}, failed, v1alpha1.RunSummary{Count: 1, Failed: 1}, &v1alpha1.RunSummary{Count: 1, Failed: 1}},
		"wet first, both fail":   {[]string{"wet", "dry"}, "dry", map[string]string{"dry": "F", "wet": "F"}, failed, v1alpha1.RunSummary{Count: 1, Failed: 1}, &v1alpha1.RunSummary{Count: 1, Failed: 1}},
		"only dry fails":         {[]string{"dry", "wet"}, "dry", map[string]string{"dry": "F", "wet": "S"}, success, v1alpha1.RunSummary{Count: 1, Successful: 1}, &v1alpha1.RunSummary{Count: 1, Failed: 1}},
		"only dry, all pass":     {[]string{"a", "b"}, ".*", map[string]string{"a": "S", "b": "S"}, success, v1alpha1.RunSummary{}, &v1alpha1.RunSummary{Count: 2, Successful: 2}},
		"only dry, none passes":  {[]string{"a", "b"}, ".*", map[string]string{"a": "I", "b": "F"}, success, v1alpha1.RunSummary{}, &v1alpha1.RunSummary{Count: 2, Failed: 1, Inconclusive: 1}},
		"dry error decides not":  {[]string{"dry", "wet"}, "dry", map[string]string{"dry": "EEEEE", "wet": "S"}, success, v1alpha1.RunSummary{Count: 1, Successful: 1}, &v1alpha1.RunSummary{Count: 1, Error: 1}},
		"no dry run, no summary": {[]string{"wet"}, "", map[string]string{"wet": "S"}, success, v1alpha1.RunSummary{Count: 1, Successful: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.AnalysisRunSpec{Metrics: metrics(tc.names...)}
			if tc.dry != "" {
				spec.DryRun = []v1alpha1.DryRun{{MetricName: tc.dry}}
			}
			phases := map[string][]v1alpha1.AnalysisPhase{}
			for k, v := range tc.phases {
				phases[k] = phasesOf(v)
			}
			status, _ := play(prepare(t, spec), phases)
			if status.Phase != tc.want {
				t.Errorf("got %s (%s), want %s", status.Phase, status.Message, tc.want)
			}
			if diff := cmp.Diff(tc.wet, status.RunSummary); diff != "" {
				t.Errorf("runSummary (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.dryRun, status.DryRunSummary); diff != "" {
				t.Errorf("dryRunSummary (-want +got):\n%s", diff)
			}
		})
	}
}

// A dry metric that has failed doesn't end the run for the others.

func TestC37_DryFailureDoesNotEndTheRun(t *testing.T) {
	wet := promMetric("wet", "up")
	wet.Count, wet.Interval = limit(3), "1s"
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{promMetric("dry", "up"), wet}, DryRun: []v1alpha1.DryRun{{MetricName: "dry"}}})
	status, _ := play(p, map[string][]v1alpha1.AnalysisPhase{"dry": phasesOf("F"), "wet": phasesOf("SSS")})
	if got := status.MetricResults[1].Count; got != 3 || status.Phase != success {
		t.Errorf("wet was measured %d times and the run is %s, want 3 and Successful", got, status.Phase)
	}
}

func TestC14_Terminated(t *testing.T) {
	bounded := v1alpha1.Metric{Count: limit(5), Interval: "1s", FailureLimit: limit(2)}
	for name, tc := range map[string]struct {
		metric v1alpha1.Metric
		phases string
		want   v1alpha1.AnalysisPhase
		counts v1alpha1.RunSummary
	}{
		"bad and no success takes the last bad phase": {bounded, "EEFE", errored, v1alpha1.RunSummary{Count: 1, Error: 1}},
		"the last one is a failure":                   {bounded, "EEF", failed, v1alpha1.RunSummary{Count: 1, Failed: 1}},
		"a success and tolerated failures":            {bounded, "FSF", success, v1alpha1.RunSummary{Count: 1, Successful: 1}},
		"nothing measured":                            {bounded, "", success, v1alpha1.RunSummary{Count: 1}},
		"unlimited":                                   {v1alpha1.Metric{Interval: "1s"}, "SSS", success, v1alpha1.RunSummary{Count: 1, Successful: 1}},
		"unlimited with errors alone":                 {v1alpha1.Metric{Interval: "1s"}, "EE", errored, v1alpha1.RunSummary{Count: 1, Error: 1}},
		"unlimited, all failures tolerated":           {v1alpha1.Metric{Interval: "1s", FailureLimit: limit(-1)}, "FF", success, v1alpha1.RunSummary{Count: 1, Successful: 1}},
		"inconclusive within the limit":               {v1alpha1.Metric{Interval: "1s", InconclusiveLimit: limit(3)}, "II", inconclusive, v1alpha1.RunSummary{Count: 1, Inconclusive: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := promMetric("m", "up")
			m.Interval, m.Count, m.FailureLimit, m.InconclusiveLimit = tc.metric.Interval, tc.metric.Count, tc.metric.FailureLimit, tc.metric.InconclusiveLimit
			spec := v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}}
			status, now := play(prepare(t, spec), map[string][]v1alpha1.AnalysisPhase{"m": phasesOf(tc.phases)})
			before := status.MetricResults[0]
			spec.Terminate = true
			p := prepare(t, spec)
			if tasks := p.Due(status, now.Add(time.Hour)); len(tasks) > 0 {
				t.Errorf("%v is due in a run that ends", tasks)
			}
			status = p.Fold(status, nil, now)
			if status.Phase != tc.want {
				t.Errorf("got %s (%s), want %s", status.Phase, status.Message, tc.want)
			}
			if tc.want == success && status.Message != "Run Terminated" {
				t.Errorf("got message %q", status.Message)
			}
			after := status.MetricResults[0]
			if before.Successful != after.Successful || before.Count != after.Count || before.Error != after.Error {
				t.Errorf("the end changed the counters: %+v, before %+v", after, before)
			}
			if diff := cmp.Diff(tc.counts, status.RunSummary); diff != "" {
				t.Errorf("runSummary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadMetricEndsTheOthers(t *testing.T) {
	long := promMetric("long", "up")
	long.Interval = "1s"
	for name, names := range map[string][]v1alpha1.Metric{
		"bad last":  {long, promMetric("never", "up"), promMetric("bad", "up")},
		"bad first": {promMetric("bad", "up"), promMetric("never", "up"), long},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range names {
				if names[i].Name == "never" {
					names[i].InitialDelay = "1h"
				}
			}
			p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: names})
			status, now := play(p, map[string][]v1alpha1.AnalysisPhase{"bad": phasesOf("F"), "long": phasesOf("SSSSS")})
			if status.Phase != failed {
				t.Errorf("got %s, want Failed", status.Phase)
			}
			if now != t0 {
				t.Errorf("it went on until %s", now)
			}
			if got := resultOf(status, "never"); got.Phase != success || got.Message != "Terminated" {
				t.Errorf("never: got %s %q", got.Phase, got.Message)
			}
		})
	}
}

func TestDueTimes(t *testing.T) {
	m := promMetric("m", "up")
	m.InitialDelay, m.Interval, m.Count = "5s", "3s", limit(3)
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
	status := v1alpha1.AnalysisRunStatus{}
	if tasks := p.Due(status, t0); tasks != nil {
		t.Errorf("%v is due before the start", tasks)
	}
	if after, ok := p.Wake(status, t0); !ok || after != 0 {
		t.Errorf("a new run wakes after %s, %t", after, ok)
	}
	status = p.Fold(status, nil, t0)
	now := t0
	for i, step := range []struct {
		after time.Duration
		phase v1alpha1.AnalysisPhase
		took  time.Duration
	}{
		{5 * time.Second, success, 2 * time.Second},
		{3 * time.Second, errored, 0}, // from the end of the one before
		{10 * time.Second, failed, 0}, // an error waits for 10 s
	} {
		after, ok := p.Wake(status, now)
		if !ok || after != step.after {
			t.Fatalf("step %d: wakes after %s, want %s", i, after, step.after)
		}
		if early := p.Due(status, now.Add(after-time.Second)); len(early) > 0 {
			t.Fatalf("step %d: due a second early", i)
		}
		now = now.Add(after)
		tasks := p.Due(status, now)
		if len(tasks) != 1 || tasks[0].Action != Begin || tasks[0].Number != i+1 {
			t.Fatalf("step %d: got %+v", i, tasks)
		}
		if got, want := tasks[0].ID("u"), fmt.Sprintf("u.m.%d", i+1); got != want {
			t.Errorf("got ID %s, want %s", got, want)
		}
		started := now
		now = now.Add(step.took)
		status = p.Fold(status, []Measured{{Task: tasks[0], Phase: step.phase, Started: started}}, now)
	}
	if _, ok := p.Wake(status, now); ok || status.Phase != failed {
		t.Errorf("the run is %s and wakes again: %t", status.Phase, ok)
	}
}

func TestPendingMeasurement(t *testing.T) {
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: metrics("m", "other")})
	status := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, t0)
	tasks := p.Due(status, t0)
	status = p.Fold(status, []Measured{
		{Task: tasks[0], Phase: running, Started: t0, Handle: Handle{"job": "j1"}, After: 7 * time.Second},
		{Task: tasks[1], Phase: success, Started: t0},
	}, t0)
	if after, ok := p.Wake(status, t0); !ok || after != 7*time.Second {
		t.Errorf("wakes after %s", after)
	}
	if tasks := p.Due(status, t0.Add(6*time.Second)); len(tasks) > 0 {
		t.Errorf("got %v too early", tasks)
	}
	now := t0.Add(7 * time.Second)
	tasks = p.Due(status, now)
	if len(tasks) != 1 || tasks[0].Action != Resume || tasks[0].Prior.Metadata["job"] != "j1" || tasks[0].Number != 1 {
		t.Fatalf("got %+v", tasks)
	}
	done := p.Fold(status, []Measured{{Task: tasks[0], Phase: success}}, now)
	if r := done.MetricResults[0]; len(r.Measurements) != 1 || r.Count != 1 || !r.Measurements[0].StartedAt.Time.Equal(t0) {
		t.Errorf("got %+v", r)
	}
	if done.Phase != success {
		t.Errorf("got %s", done.Phase)
	}

	ended := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: metrics("m", "other"), Terminate: true})
	if got := ended.Fold(status, nil, t0); got.Phase != running {
		t.Errorf("the run is %s while a measurement is to be stopped", got.Phase)
	}
	tasks = ended.Due(status, t0.Add(time.Second))
	if len(tasks) != 1 || tasks[0].Action != Stop {
		t.Fatalf("got %+v, want a Stop", tasks)
	}
	stopped := ended.Fold(status, []Measured{Stopped(tasks[0])}, t0.Add(time.Second))
	if stopped.Phase != inconclusive || stopped.MetricResults[0].Inconclusive != 1 {
		t.Errorf("got %s, %+v", stopped.Phase, stopped.MetricResults[0])
	}
}

func TestC64_StatusStaysSmall(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	m := promMetric("m", "up")
	m.Interval = "1s"
	n := promMetric("kept", "up")
	n.Interval = "1s"
	p := prepare(t, v1alpha1.AnalysisRunSpec{
		Metrics:              []v1alpha1.Metric{m, n},
		MeasurementRetention: []v1alpha1.MeasurementRetention{{MetricName: "kept", Limit: 100000}},
	})
	status, now := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, t0), t0
	for range 1000 {
		var measured []Measured
		for _, task := range p.Due(status, now) {
			measured = append(measured, Measured{Task: task, Phase: success, Value: long, Message: long, Started: now})
		}
		status, now = p.Fold(status, measured, now), now.Add(time.Second)
	}
	for i, want := range []int{10, 100} {
		r := status.MetricResults[i]
		if r.Count != 1000 || r.Successful != 1000 || r.ConsecutiveSuccess != 1000 {
			t.Errorf("%s: counters are %d, %d, %d, want 1000", r.Name, r.Count, r.Successful, r.ConsecutiveSuccess)
		}
		if i == 0 && len(r.Measurements) != want || i == 1 && len(r.Measurements) > want {
			t.Errorf("%s: %d measurements are kept, want %d", r.Name, len(r.Measurements), want)
		}
		total := 0
		for _, x := range r.Measurements {
			total += size(x)
			if len(x.Value) > 4<<10+len("…truncated") || !strings.HasSuffix(x.Value, "…truncated") {
				t.Fatalf("%s: a value has %d bytes", r.Name, len(x.Value))
			}
		}
		if total > maxStatus {
			t.Errorf("%s: %d bytes are kept", r.Name, total)
		}
	}
}

func TestC64_RepeatedErrorsAreSaidOnce(t *testing.T) {
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: metrics("m")})
	status, _ := play(p, map[string][]v1alpha1.AnalysisPhase{"m": phasesOf("EEEEE")})
	var got []string
	for _, m := range status.MetricResults[0].Measurements {
		got = append(got, m.Message)
	}
	want := []string{sameAsNext, sameAsNext, sameAsNext, sameAsNext, "said Error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFoldLeavesItsInputAlone(t *testing.T) {
	m := promMetric("m", "up")
	m.Interval = "1s"
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
	status, now := play(p, map[string][]v1alpha1.AnalysisPhase{"m": phasesOf("SSS")})
	before := *status.DeepCopy()
	p.Fold(status, []Measured{{Task: Task{}, Phase: failed}}, now)
	if diff := cmp.Diff(before, status); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
	over := p.Fold(status, []Measured{{Task: Task{}, Phase: failed}}, now)
	if diff := cmp.Diff(over, p.Fold(over, []Measured{{Task: Task{}, Phase: success}}, now.Add(time.Hour))); diff != "" {
		t.Errorf("a finished run was changed:\n%s", diff)
	}
}

func TestRefuse(t *testing.T) {
	_, err := Prepare(v1alpha1.AnalysisRunSpec{})
	got := Refuse(v1alpha1.AnalysisRunStatus{}, err, t0)
	if got.Phase != errored || !strings.Contains(got.Message, "no metric") || got.CompletedAt == nil {
		t.Errorf("got %+v", got)
	}
	done := v1alpha1.AnalysisRunStatus{Phase: success}
	if diff := cmp.Diff(done, Refuse(done, err, t0)); diff != "" {
		t.Errorf("a finished run was changed:\n%s", diff)
	}
}

// Counters add up, whatever is measured; nothing but a success counts as one.

// The order of the metrics changes nothing about the phase of a run, and a run with no

// success in a metric that decides is never Successful by anything but its end before

// the first measurement.

// A run whose measurements are errors and nothing else never ends Successful,

// whatever its limits are and whether or not it is ended early.

// What Judge says of a failed value reaches Detail through Fold.

// Stored times have whole seconds; an interval is never shorter than it says for it.
