package analysis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestCountersProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := promMetric("m", "up")
		m.Interval = "1s"
		m.FailureLimit, m.InconclusiveLimit, m.ConsecutiveErrorLimit = limit(1000), limit(1000), limit(1000)
		m.Name = "m"
		p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
		phases := rapid.SliceOfN(rapid.SampledFrom(phasesOf("SFIE")), 0, 40).Draw(t, "phases")
		status, _ := play(p, map[string][]v1alpha1.AnalysisPhase{"m": append([]v1alpha1.AnalysisPhase(nil), phases...)})
		want := map[v1alpha1.AnalysisPhase]int32{}
		var inARow, errorsInARow int32
		for _, phase := range phases {
			want[phase]++
			inARow, errorsInARow = inARow+1, errorsInARow+1
			if phase != success {
				inARow = 0
			}
			if phase != errored {
				errorsInARow = 0
			}
		}
		r := status.MetricResults[0]
		got := map[v1alpha1.AnalysisPhase]int32{success: r.Successful, failed: r.Failed, inconclusive: r.Inconclusive, errored: r.Error}
		for phase, n := range got {
			if n != want[phase] {
				t.Fatalf("%s: got %d, want %d", phase, n, want[phase])
			}
		}
		if r.Count != r.Successful+r.Failed+r.Inconclusive || r.ConsecutiveSuccess != inARow || r.ConsecutiveError != errorsInARow {
			t.Fatalf("got %+v", r)
		}
		if len(r.Measurements) != min(len(phases), 10) {
			t.Fatalf("%d of %d measurements are kept", len(r.Measurements), len(phases))
		}
	})
}

func TestWorstOfProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "metrics")
		phases := make([]v1alpha1.AnalysisPhase, n)
		spec := v1alpha1.AnalysisRunSpec{}
		for i := range phases {
			phases[i] = rapid.SampledFrom(phasesOf("SFIE")).Draw(t, "phase")
			m := promMetric(fmt.Sprintf("m%d", i), "up")
			m.ConsecutiveErrorLimit = limit(0)
			spec.Metrics = append(spec.Metrics, m)
		}
		run := func(order []int) v1alpha1.AnalysisPhase {
			s := v1alpha1.AnalysisRunSpec{}
			given := map[string][]v1alpha1.AnalysisPhase{}
			for _, i := range order {
				s.Metrics = append(s.Metrics, spec.Metrics[i])
				given[spec.Metrics[i].Name] = []v1alpha1.AnalysisPhase{phases[i]}
			}
			status, _ := play(prepare(t, s), given)
			return status.Phase
		}
		order := make([]int, n)
		want := success
		for i := range order {
			order[i] = i
			if severity[phases[i]] > severity[want] {
				want = phases[i]
			}
		}
		shuffled := rapid.Permutation(order).Draw(t, "order")
		if got := run(order); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		if got := run(shuffled); got != want {
			t.Fatalf("in another order: got %s, want %s", got, want)
		}
	})
}

func TestNoSuccessFromErrorsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := promMetric("m", "up")
		m.Interval = "1s"
		m.Count = limit(rapid.Int32Range(0, 5).Draw(t, "count"))
		m.ConsecutiveErrorLimit = limit(rapid.Int32Range(0, 5).Draw(t, "errors"))
		m.FailureLimit = limit(rapid.SampledFrom([]int32{-1, 0}).Draw(t, "failures"))
		spec := v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}}
		n := rapid.IntRange(1, 12).Draw(t, "measured")
		phases := make([]v1alpha1.AnalysisPhase, n)
		for i := range phases {
			phases[i] = errored
		}
		status, now := play(prepare(t, spec), map[string][]v1alpha1.AnalysisPhase{"m": phases})
		spec.Terminate = true
		status = prepare(t, spec).Fold(status, nil, now)
		if status.Phase != errored {
			t.Fatalf("got %s (%s)", status.Phase, status.Message)
		}
	})
}

func TestDetailAndLines(t *testing.T) {
	at := func(s int) *metav1.Time { x := metav1.NewTime(t0.Add(time.Duration(s) * time.Second)); return &x }
	status := v1alpha1.AnalysisRunStatus{
		Phase: failed, Message: `Metric "success-rate" assessed Failed due to failed (1) > failureLimit (0)`,
		MetricResults: []v1alpha1.MetricResult{
			{Name: "dry", Phase: failed, DryRun: true, Message: "failed (1) > failureLimit (0)", Measurements: []v1alpha1.Measurement{{Phase: failed, Message: "dry", FinishedAt: at(0)}}},
			{Name: "fine", Phase: success, Measurements: []v1alpha1.Measurement{{Phase: success, Value: "1", FinishedAt: at(0)}}},
			{Name: "success-rate", Phase: failed, Message: "failed (1) > failureLimit (0)", Measurements: []v1alpha1.Measurement{
				{Phase: success, Value: "[1]", FinishedAt: at(1)},
				{Phase: failed, Value: "[0.5]", Message: "value [0.5] does not satisfy\n  result[0] >= 0.95", FinishedAt: at(4)},
				{Phase: running},
			}},
		},
	}
	const want = "success-rate: value [0.5] does not satisfy result[0] >= 0.95 (failed 1 > failureLimit 0)"
	if got := Detail(status); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	wantLines := []string{
		"2026-08-17T10:00:01Z success-rate Successful: value [1]",
		"2026-08-17T10:00:04Z success-rate Failed: value [0.5] does not satisfy result[0] >= 0.95",
	}
	if diff := cmp.Diff(wantLines, Lines(status)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		status v1alpha1.AnalysisRunStatus
		want   string
	}{
		"under way":       {v1alpha1.AnalysisRunStatus{Phase: running, Message: "x"}, ""},
		"successful":      {v1alpha1.AnalysisRunStatus{Phase: success, Message: "Run Terminated"}, ""},
		"refused":         {v1alpha1.AnalysisRunStatus{Phase: errored, Message: "analysis spec invalid: x"}, "analysis spec invalid: x"},
		"without a value": {v1alpha1.AnalysisRunStatus{Phase: failed, MetricResults: []v1alpha1.MetricResult{{Name: "m", Phase: failed, Message: "failed (1) > failureLimit (0)"}}}, "m: failed 1 > failureLimit 0"},
	} {
		if got := Detail(tc.status); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	for range 20 {
		status.MetricResults[2].Measurements = append(status.MetricResults[2].Measurements, v1alpha1.Measurement{Phase: failed, Message: strings.Repeat("x", 1000), FinishedAt: at(9)})
	}
	lines := Lines(status)
	if len(lines) != 10 {
		t.Errorf("got %d lines, want 10", len(lines))
	}
	for _, l := range lines {
		if len(l) > maxLine+len(truncated) || strings.Contains(l, "\n") {
			t.Errorf("a line has %d bytes", len(l))
		}
	}
}

func TestDetailOfAJudgedValue(t *testing.T) {
	m := promMetric("success-rate", "up")
	m.SuccessCondition = "result[0] >= 0.95"
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
	status := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, t0)
	c, err := Compile(m)
	if err != nil {
		t.Fatal(err)
	}
	phase, message := Judge(c, list(0.5), t0)
	status = p.Fold(status, []Measured{{Task: p.Due(status, t0)[0], Phase: phase, Message: message, Value: Text(list(0.5)), Started: t0}}, t0)
	const want = "success-rate: value [0.5] does not satisfy result[0] >= 0.95 (failed 1 > failureLimit 0)"
	if got := Detail(status); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestIntervalIsAMinimum(t *testing.T) {
	m := promMetric("m", "up")
	m.Interval = "1s"
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
	late := t0.Add(900 * time.Millisecond)
	status := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, late)
	status = p.Fold(status, []Measured{{Task: p.Due(status, late)[0], Phase: success, Started: late}}, late)
	after, ok := p.Wake(status, late)
	if !ok || after < time.Second || after >= 2*time.Second {
		t.Errorf("the next measurement is due after %s, want 1s to 2s", after)
	}
	if early := p.Due(status, late.Add(999*time.Millisecond)); len(early) > 0 {
		t.Error("it is due before its interval is over")
	}
}
