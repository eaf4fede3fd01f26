package analysis

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// maxLines is the most measurements that Lines gives.
	maxLines = 10
	// maxLine is the most bytes of one line.
	maxLine = 240
)

// Detail says for people what condemned a run: the metric, the value and the limit,
// such as
//
//	success-rate: value [0.5] does not satisfy result[0] >= 0.95 (failed 1 > failureLimit 0)
//
// It is the run's message when no metric is to blame, and empty for a run that is
// under way or Successful.
func Detail(status v1alpha1.AnalysisRunStatus) string {
	if !bad(status.Phase) {
		return ""
	}
	for _, r := range status.MetricResults {
		if r.DryRun || r.Phase != status.Phase {
			continue
		}
		limit := strings.NewReplacer("(", "", ")", "").Replace(r.Message)
		last, ok := lastWith(r, r.Phase)
		if !ok || last.Message == "" {
			return oneLine(fmt.Sprintf("%s: %s", r.Name, limit))
		}
		return oneLine(fmt.Sprintf("%s: %s (%s)", r.Name, last.Message, limit))
	}
	return oneLine(status.Message)
}

// Lines are the last measurements, at most 10, of the metrics that condemned a run,
// in the order of time, for the text of a revert:
//
//	2026-08-17T10:00:05Z success-rate Failed: value [0.5] does not satisfy result[0] >= 0.95
func Lines(status v1alpha1.AnalysisRunStatus) []string {
	if !bad(status.Phase) {
		return nil
	}
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	for _, r := range status.MetricResults {
		if r.DryRun || !bad(r.Phase) {
			continue
		}
		for _, m := range r.Measurements {
			if m.FinishedAt != nil {
				lines = append(lines, line{at: m.FinishedAt.Time, text: measurementLine(r.Name, m)})
			}
		}
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].at.Before(lines[j].at) })
	if len(lines) > maxLines {
		lines = lines[len(lines)-maxLines:]
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.text
	}
	return texts
}

func measurementLine(metric string, m v1alpha1.Measurement) string {
	text := m.Message
	if text == "" {
		text = "value " + m.Value
	}
	return oneLine(fmt.Sprintf("%s %s %s: %s", m.FinishedAt.UTC().Format(time.RFC3339), metric, m.Phase, text))
}

// lastWith is the last measurement of a phase.
func lastWith(r v1alpha1.MetricResult, phase v1alpha1.AnalysisPhase) (v1alpha1.Measurement, bool) {
	for i := len(r.Measurements) - 1; i >= 0; i-- {
		if r.Measurements[i].Phase == phase {
			return r.Measurements[i], true
		}
	}
	return v1alpha1.Measurement{}, false
}

// oneLine puts text on one line of bounded length.
func oneLine(s string) string {
	return Truncate(strings.Join(strings.Fields(s), " "), maxLine)
}
