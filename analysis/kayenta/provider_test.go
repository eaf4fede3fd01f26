package kayenta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var start = time.Date(2026, 8, 17, 10, 0, 0, 0, time.UTC)

func metric(address string) *v1alpha1.KayentaMetric {
	detail := func(name string) v1alpha1.ScopeDetail {
		return v1alpha1.ScopeDetail{Scope: name, Region: "eu", Step: 60, Start: "2026-08-17T09:00:00Z", End: "2026-08-17T10:00:00Z"}
	}
	return &v1alpha1.KayentaMetric{
		Address: address, Application: "shop", CanaryConfigName: "latency & errors", MetricsAccountName: "prom", ConfigurationAccountName: "conf",
		StorageAccountName: "s3", Threshold: v1alpha1.KayentaThreshold{Pass: 90, Marginal: 75},
		Scopes: []v1alpha1.KayentaScope{{Name: `say "default"`, ControlScope: detail("stable"), ExperimentScope: detail("canary")}},
	}
}

func query(address string, s providertest.Settings) analysis.Query {
	m := metric(address)
	m.Application += s.Text
	if u, err := url.Parse(address); err == nil && s.User != "" && u.User == nil {
		u.User = url.UserPassword(s.User, s.Password)
		m.Address = u.String()
	}
	return analysis.Query{Metric: "m", Provider: v1alpha1.MetricProvider{Kayenta: m}, At: start}
}

func ended(score string) string {
	return `{"complete":true,"status":"succeeded","result":{"judgeResult":{"score":{"score":` + score + `,"classification":"Pass"}}}}`
}

// around is a Kayenta whose judgement ends as the last handler says.
func around(last http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/canaryConfig"):
			fmt.Fprint(w, `[{"id":"other","name":"another"},{"id":"id 1","name":"latency & errors","applications":["shop"]}]`)
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{"canaryExecutionId":"01ABC"}`)
		default:
			last(w, r)
		}
	}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		New:    func(*testing.T) analysis.Provider { return New(Options{}) },
		Query:  query,
		Around: around,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:    {Body: ended("95.5"), Want: 95.5},
			providertest.NaN:       {Body: ended(`"NaN"`), Fails: true}, // no verdict can be drawn
			providertest.Inf:       {Body: ended(`"Infinity"`), Fails: true},
			providertest.NegInf:    {Body: ended("-1e999"), Fails: true},
			providertest.NoData:    {Body: ended("null"), Fails: true},
			providertest.Text:      {Body: ended(`"good"`), Fails: true},
			providertest.WrongType: {Body: `{"complete":"yes"}`, Fails: true},
			providertest.Undecoded: {Body: `<html>`, Fails: true},
			providertest.Half:      {Body: `{"complete":true}`, Fails: true},
			providertest.Cut:       {Body: ended("95.5")[:20], Fails: true},
			providertest.Null:      {Body: `null`, Fails: true},
		},
		Unsayable: map[providertest.Shape]string{providertest.ManySeries: "a judgement has one score"},
		Lacks: map[providertest.Setting]string{
			providertest.OwnTimeout: "Argo's 15 s", providertest.SkipCheck: "there is no such field", providertest.CustomHeaders: "there is no such field",
		},
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: strings.Replace(ended("10"), `"score":{"score":10`, `"score":{"score":10,"classificationReason":"as `+credential+` asked"`, 1), Want: 10.0}
		},
		OwnAddress: true,
		ErrorBody: func(words string) string {
			body, err := json.Marshal(map[string]any{"status": 500, "error": "Internal Server Error", "message": words})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		},
	})
}

type asked struct{ Method, Path, Query, Body, Type string }

// The whole protocol, as Kayenta's controllers have it.
func TestRequests(t *testing.T) {
	var got []asked
	status := `{"complete":false,"status":"running","result":null}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, asked{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header.Get("Content-Type")})
		around(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, status) })(w, r)
	}))
	defer s.Close()
	p, q := New(Options{}), query(s.URL+"/kayenta/", providertest.Settings{})
	measure := func(prior analysis.Handle) analysis.Outcome {
		outcome, err := p.Measure(context.Background(), q, prior)
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	first := measure(nil).(analysis.Pending)
	want := analysis.Pending{Handle: analysis.Handle{ExecutionMetadata: "01ABC", askedMetadata: "2026-08-17T10:00:00Z"}, After: 15 * time.Second}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Message = "judgement 01ABC is running"
	if diff := cmp.Diff(want, measure(first.Handle)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status = ended("95")
	sample := analysis.Sample{Value: 95.0, Verdict: v1alpha1.AnalysisPhaseSuccessful, Metadata: map[string]string{ExecutionMetadata: "01ABC"}}
	if diff := cmp.Diff(sample, measure(first.Handle), cmpopts.IgnoreUnexported(analysis.Redactor{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	scope := func(name string) string {
		return `{"scope":"` + name + `","region":"eu","location":"eu","step":60,"start":"2026-08-17T09:00:00Z","end":"2026-08-17T10:00:00Z"}`
	}
	const status1 = "storageAccountName=s3"
	if diff := cmp.Diff([]asked{
		{"GET", "/kayenta/canaryConfig", "application=shop&configurationAccountName=conf", "", ""},
		{"POST", "/kayenta/canary/id%201", "application=shop&configurationAccountName=conf&metricsAccountName=prom&storageAccountName=s3",
			`{"scopes":{"say \"default\"":{"controlScope":` + scope("stable") + `,"experimentScope":` + scope("canary") + `}},"thresholds":{"pass":90,"marginal":75}}`, "application/json"},
		{"GET", "/kayenta/canary/01ABC", status1, "", ""},
		{"GET", "/kayenta/canary/01ABC", status1, "", ""},
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVerdicts(t *testing.T) {
	with := func(score, reason string) string {
		return `{"complete":true,"status":"succeeded","result":{"judgeResult":{"score":{"score":` + score + `,"classification":"Pass","classificationReason":"` + reason + `"}}}}`
	}
	for name, tc := range map[string]struct {
		answer string
		want   v1alpha1.AnalysisPhase
		says   string
		err    error
	}{
		"best":               {ended("100"), v1alpha1.AnalysisPhaseSuccessful, "", nil},
		"just passed":        {ended("90"), v1alpha1.AnalysisPhaseSuccessful, "", nil},
		"just not":           {ended("89.99"), v1alpha1.AnalysisPhaseInconclusive, "score 89.99 is below pass 90", nil},
		"just marginal":      {ended("75.0"), v1alpha1.AnalysisPhaseInconclusive, "not below marginal 75", nil},
		"just failed":        {ended("74.999"), v1alpha1.AnalysisPhaseFailed, "score 74.999 is below marginal 75", nil},
		"nothing":            {ended("0"), v1alpha1.AnalysisPhaseFailed, "score 0 is below", nil},
		"Kayenta's own word": {with("10", "latency was too high"), v1alpha1.AnalysisPhaseFailed, "latency was too high", nil},
		"more than the best": {ended("101"), "", "not from 0 to 100", ErrNoScore},
		"less than nothing":  {ended("-1"), "", "not from 0 to 100", ErrNoScore},
		"no result":          {`{"complete":true,"status":"terminal","result":null,"exception":{"details":{"error":"no such metric"}}}`, "", "no such metric", ErrNoScore},
		"canceled":           {`{"complete":true,"status":"canceled"}`, "", "ended canceled", ErrNoScore},
		"an empty score":     {`{"complete":true,"status":"succeeded","result":{"judgeResult":{"score":{}}}}`, "", "there is none", ErrNoScore},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := judged(t, tc.answer)
			if !errors.Is(err, tc.err) || got.Verdict != tc.want {
				t.Fatalf("got %+v, %v, want %s and %v", got, err, tc.want, tc.err)
			}
			if text := got.Message + fmt.Sprint(err); !strings.Contains(text, tc.says) || tc.says == "" && got.Message != "" {
				t.Errorf("got %q, want it to say %q", text, tc.says)
			}
		})
	}
}

// judged is the outcome of a judgement that gave this answer.
func judged(t *testing.T, answer string) (analysis.Sample, error) {
	t.Helper()
	s := httptest.NewServer(around(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	defer s.Close()
	outcome, err := New(Options{}).Measure(context.Background(), query(s.URL, providertest.Settings{}), analysis.Handle{ExecutionMetadata: "01ABC"})
	sample, _ := outcome.(analysis.Sample) // none with an error
	return sample, err
}

// A score that is none never passes as 0, nor as anything else.
func TestC19_AScoreThatIsNoNumberIsNoZero(t *testing.T) {
	for _, score := range []string{"null", `"NaN"`, `""`, "[]", "false"} {
		if got, err := judged(t, ended(score)); !errors.Is(err, ErrNoScore) {
			t.Errorf("%s: got %+v, %v, want ErrNoScore", score, got, err)
		}
	}
}

func TestBeginning(t *testing.T) {
	for name, tc := range map[string]struct {
		configs, execution string
		want               error
		says               string
	}{
		"no config at all":    {`[]`, "", ErrNoConfig, "not among the 0"},
		"another config":      {`[{"id":"x","name":"latency"}]`, "", ErrNoConfig, `"latency & errors"`},
		"a config with no id": {`[{"name":"latency & errors"}]`, "", ErrNoConfig, ""},
		"no list":             {`{}`, "", nil, "not Kayenta's"},
		"no execution":        {`[{"id":"x","name":"latency & errors"}]`, `{}`, nil, "no canaryExecutionId"},
		"a huge execution":    {`[{"id":"x","name":"latency & errors"}]`, `{"canaryExecutionId":"` + strings.Repeat("x", 257) + `"}`, nil, "at most 256"},
		"a null execution":    {`[{"id":"x","name":"latency & errors"}]`, `{"canaryExecutionId":null}`, nil, "no canaryExecutionId"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					fmt.Fprint(w, tc.execution)
					return
				}
				fmt.Fprint(w, tc.configs)
			}))
			defer s.Close()
			outcome, err := New(Options{}).Measure(context.Background(), query(s.URL, providertest.Settings{}), nil)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %+v, %v, want %v with %q", outcome, err, tc.want, tc.says)
			}
		})
	}
}

// A judgement that never ends is an Error after two hours.
func TestAJudgementThatNeverEnds(t *testing.T) {
	s := httptest.NewServer(around(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"complete":false,"status":"running"}`) }))
	defer s.Close()
	p, q := New(Options{}), query(s.URL, providertest.Settings{})
	first, err := p.Measure(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	prior := first.(analysis.Pending).Handle
	for _, tc := range []struct {
		after time.Duration
		want  error
	}{{0, nil}, {2*time.Hour - time.Second, nil}, {2 * time.Hour, ErrTooLong}} {
		q.At = start.Add(tc.after)
		if outcome, err := p.Measure(context.Background(), q, prior); !errors.Is(err, tc.want) || tc.want == nil && err != nil {
			t.Errorf("after %s: got %+v, %v, want %v", tc.after, outcome, err, tc.want)
		}
	}
}

// One failure while a judgement is looked for drops nothing; one that stays is an Error
// after two hours; and what trying again won't mend is an Error at once.
func TestAFailureWhileAJudgementIsLookedFor(t *testing.T) {
	cutOff := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	code := func(c int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no hunter2long", c) }
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		passes bool
	}{
		"500": {code(500), true}, "503": {code(503), true}, "429": {code(429), true}, "404": {code(404), false}, "403": {code(403), false},
		"cut off":           {cutOff, true},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var answer atomic.Pointer[http.HandlerFunc]
			answer.Store(&tc.answer)
			s := httptest.NewServer(around(func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) }))
			defer s.Close()
			p, q := New(Options{}), query(s.URL, providertest.Settings{})
			q.Redactor = analysis.MakeRedactor("hunter2long")
			first, err := p.Measure(t.Context(), q, nil)
			if err != nil {
				t.Fatal(err)
			}
			prior := first.(analysis.Pending).Handle
			look := func(after time.Duration) (analysis.Outcome, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				q.At = start.Add(after)
				return p.Measure(ctx, q, prior)
			}
			outcome, err := look(time.Minute)
			pending, ok := outcome.(analysis.Pending)
			if ok != tc.passes || (err == nil) != tc.passes {
				t.Fatalf("got %+v, %v, want it pending: %t", outcome, err, tc.passes)
			}
			if !tc.passes {
				return
			}
			if diff := cmp.Diff(prior, pending.Handle); diff != "" || pending.Message == "" || strings.Contains(pending.Message, "hunter2") {
				t.Errorf("message %q, handle (-want +got):\n%s", pending.Message, diff)
			}
			if outcome, err := look(2 * time.Hour); !errors.Is(err, ErrTooLong) {
				t.Errorf("after two hours: got %+v, %v, want ErrTooLong", outcome, err)
			}
			done := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, ended("95")) })
			answer.Store(&done)
			if outcome, err := look(2 * time.Minute); err != nil || outcome.(analysis.Sample).Verdict != v1alpha1.AnalysisPhaseSuccessful {
				t.Errorf("got %+v, %v, want it Successful", outcome, err)
			}
		})
	}
}

// The password of an address is sent to its host, and told nobody.
func TestThePasswordOfAnAddress(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, password, " ", r.Header.Get("Authorization"))
	}))
	defer s.Close()
	q := query(strings.Replace(s.URL, "http://", "http://u:hunter2long@", 1), providertest.Settings{})
	_, err := New(Options{}).Measure(context.Background(), q, nil)
	if err == nil || strings.Count(err.Error(), analysis.Redacted) != 2 || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want what was sent, redacted", err)
	}
	q.Provider.Kayenta.Address = "kayenta:8090"
	if _, err := New(Options{}).Measure(context.Background(), q, nil); !errors.Is(err, providerhttp.ErrBadAddress) {
		t.Errorf("got %v, want ErrBadAddress", err)
	}
}
