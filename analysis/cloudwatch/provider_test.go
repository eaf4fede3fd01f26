package cloudwatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/encoding/cbor"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth"
	"github.com/pushback-dev/pushback/analysis/awsauth/awstest"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// region of all tests.
const region = "eu-central-1"

// sessions ask at an endpoint of the test's, with given keys.
func sessions(endpoint string, keys aws.Credentials) *awsauth.Sessions {
	return awsauth.NewSessions(awsauth.Options{Load: []func(*config.LoadOptions) error{
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken)),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
		config.WithRegion(region), config.WithBaseEndpoint(endpoint),
	}})
}

// elsewhere asks where a query's namespace says: no metric names an endpoint.
type elsewhere struct{}

func (elsewhere) Measure(ctx context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	endpoint, keys, _ := strings.Cut(q.Namespace, " ")
	user, password, _ := strings.Cut(keys, " ")
	return New(Options{AWS: sessions(endpoint, aws.Credentials{AccessKeyID: user, SecretAccessKey: "secret-of-the-tests", SessionToken: password})}).Measure(ctx, q, prior)
}

func metric(queries ...string) *v1alpha1.CloudWatchMetric {
	m := &v1alpha1.CloudWatchMetric{}
	for _, q := range queries {
		m.MetricDataQueries = append(m.MetricDataQueries, runtime.RawExtension{Raw: []byte(q)})
	}
	return m
}

func query(url string, s providertest.Settings) analysis.Query {
	if s.User == "" {
		s.User, s.Password = "AKID", "session-token"
	}
	label, err := json.Marshal(s.Text)
	if err != nil {
		panic(err) // a string is always encoded
	}
	m := metric(`{"id":"rate","expression":"errors / requests","label":` + string(label) + `}`)
	return analysis.Query{Metric: "m", Namespace: url + " " + s.User + " " + s.Password, Provider: v1alpha1.MetricProvider{CloudWatch: m}, At: time.Unix(1_787_000_000, 0)}
}

// encoded is a value in the SDK's wire format.
func encoded(v cbor.Value) string { return string(cbor.Encode(v)) }

// at are times in the wire format.
func at(seconds ...uint64) cbor.List {
	list := cbor.List{}
	for _, s := range seconds {
		list = append(list, &cbor.Tag{ID: 1, Value: cbor.Uint(s)})
	}
	return list
}

// result is one series in the wire format.
func result(id, label string, values ...float64) cbor.Map {
	list, times := cbor.List{}, []uint64{}
	for i, v := range values {
		list, times = append(list, cbor.Float64(v)), append(times, uint64(1_787_000_000-60*i))
	}
	return cbor.Map{"Id": cbor.String(id), "Label": cbor.String(label), "StatusCode": cbor.String("Complete"), "Values": list, "Timestamps": at(times...)}
}

func page(results ...cbor.Value) cbor.Map { return cbor.Map{"MetricDataResults": cbor.List(results)} }

// series is what conditions see of it.
func series(id, label string, values ...any) map[string]any {
	times := []any{}
	for i := range values {
		times = append(times, time.Unix(1_787_000_000-60*int64(i), 0).UTC().Format(time.RFC3339))
	}
	return map[string]any{"Id": id, "Label": label, "StatusCode": "Complete", "Values": append([]any{}, values...), "Timestamps": times, "Messages": []any{}}
}

func TestConformance(t *testing.T) {
	one := func(v float64) providertest.Answer {
		return providertest.Answer{Body: encoded(page(result("rate", "l", v))), Want: []any{series("rate", "l", v)}}
	}
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return elsewhere{} },
		Query: query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     one(0.5),
			providertest.NaN:        one(math.NaN()),
			providertest.Inf:        one(math.Inf(1)),
			providertest.NegInf:     one(math.Inf(-1)),
			providertest.NoData:     {Body: encoded(page()), Want: []any{}},
			providertest.WrongType:  {Body: encoded(cbor.Map{"MetricDataResults": cbor.String("none")}), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: encoded(cbor.Map{}), Fails: true},
			providertest.Cut:        {Body: encoded(page(result("rate", "l", 1)))[:30], Fails: true},
			providertest.Null:       {Body: encoded(&cbor.Nil{}), Fails: true},
			providertest.ManySeries: {Body: encoded(page(result("rate", "b", 3, 4), result("rate", "a", 1, 2))), Want: []any{series("rate", "a", 1.0, 2.0), series("rate", "b", 3.0, 4.0)}},
		},
		Unsayable: map[providertest.Shape]string{providertest.Text: "values of CloudWatch are numbers"},
		Lacks: map[providertest.Setting]string{
			providertest.OwnTimeout: "Argo's has none", providertest.SkipCheck: "AWS has good certificates", providertest.CustomHeaders: "the API knows its headers",
			providertest.Address: "no metric names one", providertest.Redirects: "the SDK follows none, and AWS sends none",
		},
		Authorized: func(r *http.Request, user, password string) bool {
			return awstest.Verify(r, aws.Credentials{AccessKeyID: user, SecretAccessKey: "secret-of-the-tests", SessionToken: password}, "monitoring", region) == nil
		},
		OwnSecrets:  true,
		ContentType: "application/cbor",
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: encoded(page(result("rate", credential, 1))), Want: []any{series("rate", credential, 1.0)}}
		},
		ErrorBody: func(words string) string {
			return encoded(cbor.Map{"__type": cbor.String("com.amazonaws.cloudwatch#InternalServiceFault"), "Message": cbor.String(words), "message": cbor.String(words)})
		},
	})
}

// serve answers with one page after the other, and notes what is asked.
func serve(t *testing.T, pages ...cbor.Map) (*httptest.Server, *[]cbor.Map) {
	t.Helper()
	asked := &[]cbor.Map{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/service/GraniteServiceVersion20100801/operation/GetMetricData" || r.Header.Get("Smithy-Protocol") != "rpc-v2-cbor" || r.Header.Get("Content-Type") != "application/cbor" {
			t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := awstest.Verify(r, keys, "monitoring", region); err != nil {
			t.Error(err)
		}
		in, err := cbor.Decode(body)
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, in.(cbor.Map))
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.Header().Set("Content-Type", "application/cbor")
		_, _ = io.WriteString(w, encoded(pages[min(len(*asked), len(pages))-1])) // the client may have gone
	}))
	t.Cleanup(s.Close)
	return s, asked
}

var keys = aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret-access-key"}

func TestRequest(t *testing.T) {
	s, asked := serve(t, page(result("rate", "l", 1)))
	m := metric(
		`{"id":"rate","expression":"errors / requests","period":"60"}`,
		`{"Id":"errors","MetricStat":{"Metric":{"Namespace":"app","MetricName":"errors","Dimensions":[{"Name":"version","Value":"2"}]},"Period":300,"Stat":"Sum","Unit":"Count"},"ReturnData":false}`,
	)
	m.Interval = "15m"
	if _, err := New(Options{AWS: sessions(s.URL, keys)}).Measure(context.Background(), analysis.Query{Provider: v1alpha1.MetricProvider{CloudWatch: m}, At: time.Unix(1_787_000_000, 0)}, nil); err != nil {
		t.Fatal(err)
	}
	text := func(s string) cbor.Value { return cbor.String(s) }
	want := cbor.Map{
		"StartTime": &cbor.Tag{ID: 1, Value: cbor.Float64(1_787_000_000 - 900)}, "EndTime": &cbor.Tag{ID: 1, Value: cbor.Float64(1_787_000_000)},
		"ScanBy": text("TimestampDescending"),
		"MetricDataQueries": cbor.List{
			cbor.Map{"Id": text("rate"), "Expression": text("errors / requests"), "Period": cbor.Uint(60)},
			cbor.Map{"Id": text("errors"), "ReturnData": cbor.Bool(false), "MetricStat": cbor.Map{
				"Period": cbor.Uint(300), "Stat": text("Sum"), "Unit": text("Count"),
				"Metric": cbor.Map{"Namespace": text("app"), "MetricName": text("errors"), "Dimensions": cbor.List{cbor.Map{"Name": text("version"), "Value": text("2")}}},
			}},
		},
	}
	if diff := cmp.Diff([]cbor.Map{want}, *asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A series that goes on on the next page is one; messages are kept.
func TestPages(t *testing.T) {
	part := result("a", "x", 1, 2)
	part["StatusCode"] = cbor.String("PartialData")
	first := page(result("b", "y", 9), part)
	first["NextToken"] = cbor.String("more")
	slow := cbor.List{cbor.Map{"Code": cbor.String("Slow"), "Value": cbor.String("it took long")}}
	last := result("a", "x", 3)
	last["Messages"] = slow
	last["Timestamps"] = at(1_787_000_000 - 120)
	s, asked := serve(t, first, page(last))
	q := analysis.Query{At: time.Unix(1_787_000_000, 0), Provider: v1alpha1.MetricProvider{CloudWatch: metric(`{"id":"a","expression":"e"}`, `{"id":"b","expression":"e"}`)}}
	outcome, err := New(Options{AWS: sessions(s.URL, keys)}).Measure(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := series("a", "x", 1.0, 2.0, 3.0)
	all["Messages"] = []any{map[string]any{"Code": "Slow", "Value": "it took long"}}
	want := analysis.Sample{Value: []any{all, series("b", "y", 9.0)}, Metadata: map[string]string{"messages": "Slow: it took long"}}
	if diff := cmp.Diff(want, outcome, cmpopts.IgnoreUnexported(analysis.Redactor{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(*asked) != 2 || (*asked)[1]["NextToken"] != cbor.String("more") {
		t.Errorf("got %d requests, the last one %v", len(*asked), (*asked)[len(*asked)-1])
	}
}

func TestErrors(t *testing.T) {
	endless := page(result("a", "x", 1))
	endless["NextToken"] = cbor.String("more")
	with := func(status string) cbor.Map {
		r := result("a", "x")
		r["StatusCode"], r["Messages"] = cbor.String(status), cbor.List{cbor.Map{"Code": cbor.String("Why"), "Value": cbor.String("no right")}}
		return page(r)
	}
	tooMany := page(result("a", "x", 1))
	tooMany["Messages"] = cbor.List{cbor.Map{"Code": cbor.String("MaxMetrics"), "Value": cbor.String("Maximum number of allowed metrics exceeded")}}
	part := result("a", "x", 1)
	part["StatusCode"] = cbor.String("PartialData")
	for name, tc := range map[string]struct {
		answer cbor.Map
		query  string
		says   string
	}{
		"left out":       {tooMany, `{"id":"a","expression":"e"}`, ErrPartial.Error() + ": MaxMetrics: Maximum"},
		"partial":        {page(part), `{"id":"a","expression":"e"}`, ErrPartial.Error() + ": a is PartialData"},
		"forbidden":      {with("Forbidden"), `{"id":"a","expression":"e"}`, "a is Forbidden: Why: no right"},
		"internal error": {with("InternalError"), `{"id":"a","expression":"e"}`, "a is InternalError"},
		"no end":         {endless, `{"id":"a","expression":"e"}`, ErrTooManyPages.Error()},
		"bad period":     {page(), `{"id":"a","expression":"e","period":"often"}`, "metricDataQueries[0]: period"},
		"unknown field":  {page(), `{"id":"a","expresion":"e"}`, "expresion"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serve(t, tc.answer)
			outcome, err := New(Options{AWS: sessions(s.URL, keys)}).Measure(context.Background(), analysis.Query{Provider: v1alpha1.MetricProvider{CloudWatch: metric(tc.query)}}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, %v, want an error that says %q", outcome, err, tc.says)
			}
		})
	}
	if _, err := New(Options{AWS: awsauth.NewSessions(awsauth.Options{Load: []func(*config.LoadOptions) error{config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil)}})}).Measure(
		context.Background(), analysis.Query{Provider: v1alpha1.MetricProvider{CloudWatch: metric(`{"id":"a","expression":"e"}`)}}, nil); err == nil || !strings.Contains(err.Error(), awsauth.ErrNoRegion.Error()) {
		t.Errorf("without a region: got %v", err)
	}
}

// An endpoint of the controller's environment is under the egress policy too, and what a
// proxy says is told.
func TestEndpoints(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no way out for "+r.Header.Get("X-Amz-Security-Token"), http.StatusBadGateway)
	}))
	defer proxy.Close()
	for endpoint, says := range map[string]string{
		"http://169.254.169.254": "refused", "http://[fe80::1]": "refused",
		proxy.URL: "no way out for " + analysis.Redacted,
	} {
		q := query(endpoint, providertest.Settings{})
		if _, err := (elsewhere{}).Measure(context.Background(), q, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", endpoint, err, says)
		}
	}
}

func TestConditions(t *testing.T) {
	data, none := page(result("a", "x", 0.005, 0.02)), page(result("a", "x"))
	for name, tc := range map[string]struct {
		answer    cbor.Map
		language  v1alpha1.ConditionLanguage
		condition string
		want      v1alpha1.AnalysisPhase
	}{
		"C62 one number":      {data, v1alpha1.ConditionExpr, "result[0].Values[0] < 0.01", v1alpha1.AnalysisPhaseSuccessful},
		"C62 all of them":     {data, v1alpha1.ConditionExpr, "all(result[0].Values, {# <= 0.01})", v1alpha1.AnalysisPhaseFailed},
		"C62 CEL":             {data, v1alpha1.ConditionCEL, "result[0].Values.all(v, v <= 0.02) && result[0].Label == 'x'", v1alpha1.AnalysisPhaseSuccessful},
		"C62 a struct":        {data, v1alpha1.ConditionCEL, "result[0] > 1", v1alpha1.AnalysisPhaseError},
		"C40 all of nothing":  {none, v1alpha1.ConditionExpr, "all(result[0].Values, {# <= 0.01})", v1alpha1.AnalysisPhaseError},
		"C40 all, CEL":        {none, v1alpha1.ConditionCEL, "result[0].Values.all(v, v <= 0.02)", v1alpha1.AnalysisPhaseError},
		"C40 guarded":         {none, v1alpha1.ConditionExpr, "len(result[0].Values) == 0 || result[0].Values[0] < 0.01", v1alpha1.AnalysisPhaseSuccessful},
		"C40 guarded, CEL":    {none, v1alpha1.ConditionCEL, "size(result[0].Values) == 0 || result[0].Values[0] < 0.01", v1alpha1.AnalysisPhaseSuccessful},
		"C40 no series":       {page(), v1alpha1.ConditionExpr, "result[0].Values[0] < 0.01", v1alpha1.AnalysisPhaseError},
		"C61 NaN, unguarded":  {page(result("a", "x", math.NaN())), v1alpha1.ConditionExpr, "!(result[0].Values[0] > 0.01)", v1alpha1.AnalysisPhaseInconclusive},
		"not all series have": {page(result("a", "x"), result("a", "y", 1)), v1alpha1.ConditionExpr, "result[1].Values[0] == 1", v1alpha1.AnalysisPhaseSuccessful},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serve(t, tc.answer)
			m := v1alpha1.Metric{SuccessCondition: tc.condition, ConditionLanguage: tc.language}
			conditions, err := analysis.Compile(m)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := New(Options{AWS: sessions(s.URL, keys)}).Measure(context.Background(), analysis.Query{Provider: v1alpha1.MetricProvider{CloudWatch: metric(`{"id":"a","expression":"e"}`)}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, message := analysis.Judge(conditions, outcome.(analysis.Sample).Value, time.Unix(0, 0)); got != tc.want {
				t.Errorf("got %s (%s), want %s", got, message, tc.want)
			}
		})
	}
}
