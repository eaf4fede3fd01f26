package providertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// A server that answers with the credentials that it was asked with: the conditions see
// what it said, and people don't.
func testSecretsInValues(t *testing.T, h Harness) {
	const credential = "2718281828"
	answer := h.Echo(credential)
	s := serve(t, h.answers(answer.Body))
	q := h.Query(s.URL, Settings{User: "u", Password: credential})
	if !h.OwnSecrets && !h.OwnAddress {
		q.Redactor = analysis.MakeRedactor(credential)
	}
	sample, err := h.sample(context.Background(), t, q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer.Want, sample.Value); diff != "" {
		t.Errorf("the value is judged as the server gave it (-want +got):\n%s", diff)
	}
	stored := storedOf(t, q, sample)
	if strings.Contains(stored, credential) || !strings.Contains(stored, analysis.Redacted) {
		t.Errorf("stored is %q", stored)
	}
}

// storedOf is what is kept of a sample, as a run does it.
func storedOf(t *testing.T, q analysis.Query, sample analysis.Sample) string {
	t.Helper()
	redactor := q.Redactor.And(sample.Redactor)
	if sample.Verdict != "" {
		return redactor.Redact(fmt.Sprint(analysis.Text(sample.Value), sample.Message, sample.Metadata))
	}
	metric := v1alpha1.Metric{Name: q.Metric, Provider: q.Provider, SuccessCondition: "false"}
	conditions, err := analysis.Compile(metric)
	if err != nil {
		t.Fatal(err)
	}
	got := analysis.JudgeSample(metric, conditions.Redacting(redactor), analysis.Task{}, sample.Value, time.Unix(0, 0))
	return got.Value + got.Message
}
