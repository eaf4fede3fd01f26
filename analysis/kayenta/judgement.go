package kayenta

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// maxScore is the best score.
const maxScore = 100

// judgement is Kayenta's answer, as far as it is read.
type judgement struct {
	Complete *bool `json:"complete"`
	// Status such as running, succeeded, terminal or canceled.
	Status    string          `json:"status"`
	Exception json.RawMessage `json:"exception"`
	Result    struct {
		JudgeResult struct {
			Score struct {
				Score                json.RawMessage `json:"score"`
				Classification       string          `json:"classification"`
				ClassificationReason string          `json:"classificationReason"`
			} `json:"score"`
		} `json:"judgeResult"`
	} `json:"result"`
}

func (j judgement) complete() bool { return j.Complete != nil && *j.Complete }

// verdict is what the score says by the metric's thresholds. Kayenta's own words for it
// are told, and decide nothing.
func (j judgement) verdict(t v1alpha1.KayentaThreshold, execution string, r analysis.Redactor) (analysis.Sample, error) {
	given := j.Result.JudgeResult.Score
	score, err := number(given.Score)
	if err != nil {
		return analysis.Sample{}, fmt.Errorf("%w: judgement %s ended %s: %w%s", ErrNoScore, execution, j.Status, err, j.reasons())
	}
	out := analysis.Sample{Value: score, Metadata: map[string]string{ExecutionMetadata: execution}, Redactor: r}
	switch {
	case score >= float64(t.Pass):
		out.Verdict = v1alpha1.AnalysisPhaseSuccessful
		return out, nil
	case score >= float64(t.Marginal):
		out.Verdict = v1alpha1.AnalysisPhaseInconclusive
		out.Message = fmt.Sprintf("score %s is below pass %d, and not below marginal %d", analysis.Text(score), t.Pass, t.Marginal)
	default:
		out.Verdict = v1alpha1.AnalysisPhaseFailed
		out.Message = fmt.Sprintf("score %s is below marginal %d", analysis.Text(score), t.Marginal)
	}
	out.Message = providerhttp.Words(out.Message+j.reasons(), r)
	return out, nil
}

// number reads a score. Kayenta writes what is none in quotes, such as "NaN", when
// nothing could be compared.
func number(raw json.RawMessage) (float64, error) {
	var score *float64
	if len(raw) == 0 {
		return 0, fmt.Errorf("there is none")
	}
	if err := json.Unmarshal(raw, &score); err != nil {
		return 0, fmt.Errorf("%s is no number, so nothing could be compared", raw)
	}
	if score == nil {
		return 0, fmt.Errorf("it is null, so nothing could be compared")
	}
	if math.IsNaN(*score) || *score < 0 || *score > maxScore {
		return 0, fmt.Errorf("%s is not from 0 to %d", raw, maxScore)
	}
	return *score, nil
}

// reasons are what Kayenta says of its verdict or its trouble.
func (j judgement) reasons() string {
	var said []string
	if text := j.Result.JudgeResult.Score.ClassificationReason; text != "" {
		said = append(said, text)
	}
	if len(j.Exception) > 0 && string(j.Exception) != "null" {
		said = append(said, string(j.Exception))
	}
	if len(said) == 0 {
		return ""
	}
	return ": " + strings.Join(said, ": ")
}
