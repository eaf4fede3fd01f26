package analysis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Metadata of the usual size stays as it is, and no other grows beyond its bounds.
func TestC64_MetadataIsBrief(t *testing.T) {
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("k%02d", i)] = "v"
	}
	large := map[string]string{}
	for i := range 20 {
		large[fmt.Sprintf("k%02d", i)] = strings.Repeat("x", 1000)
	}
	for name, tc := range map[string]struct {
		given map[string]string
		keys  int
		left  string
	}{
		"none":         {nil, 0, ""},
		"as usual":     {map[string]string{"a": "1", "b": strings.Repeat("x", maxMetadata)}, 2, ""},
		"a long value": {map[string]string{"a": strings.Repeat("ä", 1<<20)}, 1, ""},
		"a long key":   {map[string]string{"a": "1", strings.Repeat("k", 1<<20): "2"}, 2, "1"},
		"many keys":    {many, maxKeys + 1, "68"},
		"much in all":  {large, 9, "12"},
	} {
		t.Run(name, func(t *testing.T) {
			got := brief(tc.given)
			if len(got) != tc.keys || got[leftOut] != tc.left {
				t.Errorf("%d keys and %q left out, want %d and %q", len(got), got[leftOut], tc.keys, tc.left)
			}
			if n := bytesOf(got); n > maxAllMetadata+100 {
				t.Errorf("%d bytes", n)
			}
			for key, value := range got {
				if len(value) > maxMetadata+len(truncated) {
					t.Errorf("%s has %d bytes", key, len(value))
				}
			}
			if name == "as usual" {
				if diff := cmp.Diff(tc.given, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// However much is said of however many metrics, the status can be stored.
func TestC64_MetadataOfManyMetricsFits(t *testing.T) {
	said := func() map[string]string {
		out := map[string]string{}
		for i := range 100 {
			out[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 1<<20)
		}
		return out
	}()
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	spec := v1alpha1.AnalysisRunSpec{Metrics: metrics(names...)}
	for i := range spec.Metrics {
		spec.Metrics[i].Interval, spec.Metrics[i].Count = "1s", nil
	}
	p := prepare(t, spec)
	status, now := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, t0), t0
	for range 3 {
		var measured []Measured
		for _, task := range p.Due(status, now) {
			x := Measured{Task: task, Phase: success, Value: strings.Repeat("v", 1000), Started: now, Metadata: said, About: said}
			if task.Index == 0 && task.Action == Begin {
				x.Phase, x.Metadata, x.Handle, x.After = running, nil, Handle{"job": strings.Repeat("j", 2000)}, time.Hour
			}
			measured = append(measured, x)
		}
		status, now = p.Fold(status, measured, now), now.Add(time.Second)
	}
	total := 0
	for _, r := range status.MetricResults {
		total += sizeOf(r)
		if len(r.Measurements) == 0 {
			t.Errorf("%s: no measurement is kept", r.Name)
		}
	}
	if total > maxStatus {
		t.Errorf("%d bytes are kept, want at most %d", total, maxStatus)
	}
	if got := len(status.MetricResults[0].Measurements[0].Metadata["job"]); got != 2000 {
		t.Errorf("the handle has %d bytes, want all of it", got)
	}
}
