package providertest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/analysis"
)

// Settings of a query, as far as all providers have them.
type Settings struct {
	// TimeoutSeconds of 0 takes the provider's default.
	TimeoutSeconds int64
	Insecure       bool
	Headers        map[string]string
	User, Password string
	// Text is put somewhere in what is asked.
	Text string
}

// Shape names a kind of answer that every provider is tried with.
type Shape string

// The shapes. A provider whose protocol can't say one of them has it in Harness.Unsayable.
const (
	Number     Shape = "number"
	NaN        Shape = "NaN"
	Inf        Shape = "+Inf"
	NegInf     Shape = "-Inf"
	NoData     Shape = "no data"
	ManySeries Shape = "many series"
	Text       Shape = "text"
	WrongType  Shape = "wrong type"
	Undecoded  Shape = "not decodable"
	// Half is a 200 in the protocol that lacks what holds the values.
	Half Shape = "half of the protocol"
	// Cut is an answer that ends in its middle.
	Cut Shape = "cut off"
	// Null is the whole answer.
	Null Shape = "null"
)

var shapes = []Shape{Number, NaN, Inf, NegInf, NoData, ManySeries, Text, WrongType, Undecoded, Half, Cut, Null}

// broken are the shapes that are errors whatever the provider: none of them may be read
// as an answer of no data.
var broken = []Shape{WrongType, Undecoded, Half, Cut, Null}

// Setting is something that some providers let a metric say.
type Setting string

// The settings that a provider may lack; see Harness.Lacks.
const (
	OwnTimeout    Setting = "a timeout of its own"
	SkipCheck     Setting = "insecure"
	CustomHeaders Setting = "headers"
	Address       Setting = "an address"
	Redirects     Setting = "redirects on one host"
)

// Answer is a body in the provider's protocol, and what is to come of it.
type Answer struct {
	Body string
	// Want is the value; ignored with Fails.
	Want any
	// Fails says that Measure returns an error.
	Fails bool
}

// Harness is what the suite needs to know of a provider.
type Harness struct {
	// New makes the provider as a controller does, with every address allowed that is
	// allowed by default.
	New func(t *testing.T) analysis.Provider
	// Query asks the server at a base URL.
	Query func(url string, s Settings) analysis.Query
	// Answers by their shape.
	Answers map[Shape]Answer
	// Unsayable are the shapes that the protocol can't say, with the reason.
	Unsayable map[Shape]string
	// Lacks are the settings that metrics of this provider don't have, with the reason.
	Lacks map[Setting]string
	// Authorized says whether a request carries these credentials in the provider's way.
	// Nil: HTTP's basic authentication.
	Authorized func(r *http.Request, user, password string) bool
	// OwnSecrets says that the provider reads the password itself, from a Secret, so that
	// the query's Redactor doesn't know it.
	OwnSecrets bool
	// OwnAddress says that the password stands in the address, so that the provider knows
	// it whether or not the query's Redactor does.
	OwnAddress bool
	// Echo is an answer whose value, or what is said beside a verdict, holds a credential.
	// It is digits, for those that answer in numbers alone.
	Echo func(credential string) Answer
	// Around makes a server of a protocol of several requests out of a handler that gives
	// the last answer. Nil: there is one request.
	Around func(last http.HandlerFunc) http.HandlerFunc
	// ContentType of answers, and of errors too if it is set. Default application/json.
	ContentType string
	// ErrorBody is an error in the provider's protocol that says the words given.
	ErrorBody func(words string) string
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"Values":          testValues,
		"Timeout":         testTimeout,
		"Cancelled":       testCancelled,
		"StatusCodes":     testStatusCodes,
		"HugeBody":        testHugeBody,
		"EndlessBody":     testEndlessBody,
		"RedirectAway":    testRedirectAway,
		"RedirectAtHome":  testRedirectAtHome,
		"Certificates":    testCertificates,
		"Credentials":     testCredentials,
		"SecretsInErrors": testSecretsInErrors,
		"SecretsInValues": testSecretsInValues,
		"Unreachable":     testUnreachable,
		"LinkLocal":       testLinkLocal,
		"Concurrent":      testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
}

// limit is how long a test waits for what should come much earlier.
const limit = 20 * time.Second

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server notices that its client has gone only once the body is read.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (h Harness) answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", cmp.Or(h.ContentType, "application/json"))
		_, _ = w.Write([]byte(body)) // the client may have gone
	}
}

func (h Harness) authorized(r *http.Request, user, password string) bool {
	if h.Authorized != nil {
		return h.Authorized(r, user, password)
	}
	gotUser, gotPassword, ok := r.BasicAuth()
	return ok && gotUser == user && gotPassword == password
}

// failing gives an error in the provider's protocol.
func (h Harness) failing(w http.ResponseWriter, code int, body string) {
	if h.ContentType != "" {
		w.Header().Set("Content-Type", h.ContentType)
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body)) // the client may have gone
}

func (h Harness) ok() http.HandlerFunc { return h.answers(h.Answers[Number].Body) }

// answers is a server that gives a body in the end.
func (h Harness) answers(body string) http.HandlerFunc {
	if h.Around == nil {
		return h.answering(body)
	}
	return h.Around(h.answering(body))
}

// polls is how often what is pending is asked for again.
const polls = 5

// finish asks until there is a value, without waiting in between.
func finish(ctx context.Context, p analysis.Provider, q analysis.Query) (analysis.Outcome, error) {
	outcome, err := p.Measure(ctx, q, nil)
	for range polls {
		pending, ok := outcome.(analysis.Pending)
		if err != nil || !ok {
			break
		}
		outcome, err = p.Measure(ctx, q, pending.Handle)
	}
	return outcome, err
}

// measure asks for one value, and fails the test when the answer takes longer than the limit.
func (h Harness) measure(ctx context.Context, t *testing.T, q analysis.Query) (any, error) {
	t.Helper()
	sample, err := h.sample(ctx, t, q)
	if err != nil {
		return nil, err
	}
	return sample.Value, nil
}

// sample is measure with all that comes with the value.
func (h Harness) sample(ctx context.Context, t *testing.T, q analysis.Query) (analysis.Sample, error) {
	t.Helper()
	type result struct {
		outcome analysis.Outcome
		err     error
	}
	done := make(chan result, 1)
	provider := h.New(t)
	go func() {
		outcome, err := finish(ctx, provider, q)
		done <- result{outcome, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return analysis.Sample{}, r.err
		}
		sample, ok := r.outcome.(analysis.Sample)
		if !ok {
			t.Fatalf("got a %T, want a Sample", r.outcome)
		}
		return sample, nil
	case <-time.After(limit):
		t.Fatalf("Measure did not return within %s", limit)
		return analysis.Sample{}, nil
	}
}
