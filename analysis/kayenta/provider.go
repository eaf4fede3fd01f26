package kayenta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	// ExecutionMetadata is the measurement's metadata with the id of the judgement, as
	// Argo has it.
	ExecutionMetadata = "canaryExecutionId"
	// askedMetadata is when it was asked for, in RFC 3339, until it has ended.
	askedMetadata = "asked-at"
)

const (
	// timeout bounds one call, which asks Kayenta once or twice; Argo's.
	timeout = 15 * time.Second
	// pause is the time between two looks at a judgement; Argo's.
	pause = 15 * time.Second
	// longest is how long a judgement may take, Kayenta's being away included.
	longest = 2 * time.Hour
)

// Options of the provider.
type Options struct {
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks Kayenta. It is safe for concurrent use.
type Provider struct{ transports *providerhttp.Transports }

// New makes a Provider.
func New(o Options) *Provider { return &Provider{transports: providerhttp.New(o.Egress)} }

// Measure asks for a judgement, or looks for the end of the one that prior names.
// Errors: see providerhttp.PlainError, ErrNoConfig, ErrNoScore, ErrTooLong.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.Kayenta
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.kayenta", q.Metric)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := p.server(*metric)
	if err != nil {
		return nil, plain(err, q.Redactor)
	}
	q.Redactor = q.Redactor.With(s.password) // no argument may have held it
	outcome, err := s.ask(ctx, q, prior)
	if err != nil {
		return nil, plain(err, q.Redactor)
	}
	return outcome, nil
}

func (s *server) ask(ctx context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	if prior[ExecutionMetadata] == "" {
		return s.begin(ctx, q.At)
	}
	return s.look(ctx, q, prior)
}

// begin asks for a judgement.
func (s *server) begin(ctx context.Context, at time.Time) (analysis.Outcome, error) {
	config, err := s.configID(ctx)
	if err != nil {
		return nil, err
	}
	execution, err := s.judge(ctx, config)
	if err != nil {
		return nil, err
	}
	return analysis.Pending{
		Handle: analysis.Handle{ExecutionMetadata: execution, askedMetadata: at.UTC().Format(time.RFC3339)},
		After:  pause,
	}, nil
}

// look asks how far the judgement is.
func (s *server) look(ctx context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	execution := prior[ExecutionMetadata]
	found, err := s.status(ctx, execution)
	var message string
	switch {
	case passes(err):
		// Kayenta goes on judging: to begin again would cost as long again.
		message = plain(err, q.Redactor).Error()
	case err != nil:
		return nil, err
	case found.complete():
		return found.verdict(s.metric.Threshold, execution, q.Redactor)
	default:
		message = providerhttp.Words(fmt.Sprintf("judgement %s is %s", execution, found.Status), q.Redactor)
	}
	asked, malformed := time.Parse(time.RFC3339, prior[askedMetadata])
	if malformed != nil || q.At.Sub(asked) >= longest {
		return nil, fmt.Errorf("%w: after %s: %s", ErrTooLong, longest, message)
	}
	return analysis.Pending{Handle: prior, Message: message, After: pause}, nil
}

// passes says that an error says no more than to try again: no answer in time, a
// connection that failed, too many requests, or the server's own trouble.
func passes(err error) bool {
	var answer *providerhttp.StatusError
	if errors.As(err, &answer) {
		return answer.Code >= http.StatusInternalServerError || answer.Code == http.StatusTooManyRequests || answer.Code == http.StatusRequestTimeout
	}
	var network *net.OpError
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	return cut || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && !errors.Is(err, egress.ErrRefused)
}
