package prom

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
)

// params reads the parameters of a request, from its URL or its form, as
// Prometheus does. The first that can't be used stays in err.
type params struct {
	r   *http.Request
	err error
}

func (p *params) value(name string) string { return p.r.FormValue(name) }

func (p *params) fail(name string, err error) {
	if p.err == nil {
		p.err = &apiError{badData, fmt.Errorf("invalid parameter %q: %w", name, err)}
	}
}

func (p *params) time(name string, otherwise time.Time) time.Time {
	text := p.value(name)
	if text == "" {
		return otherwise
	}
	t, err := parseTime(text)
	if err != nil {
		p.fail(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return t
}

func (p *params) requiredTime(name string) time.Time {
	t, err := parseTime(p.value(name))
	if err != nil {
		p.fail(name, err)
	}
	return t
}

func (p *params) requiredDuration(name string) time.Duration {
	d, err := parseDuration(p.value(name))
	if err != nil {
		p.fail(name, err)
	}
	return d
}

func (p *params) limit() int {
	text := p.value("limit")
	if text == "" {
		return 0
	}
	limit, err := strconv.Atoi(text)
	if err == nil && limit < 0 {
		err = errors.New("limit must be non-negative")
	}
	if err != nil {
		p.fail("limit", err)
	}
	return limit
}

// timeout is what the client allows the query, at most the server's own.
func (p *params) timeout() time.Duration {
	text := p.value("timeout")
	if text == "" {
		return queryTimeout
	}
	d, err := parseDuration(text)
	switch {
	case err != nil:
		p.fail("timeout", err)
	case d <= 0:
		p.err = &apiError{badData, fmt.Errorf("invalid parameter %q: timeout must be positive, got %s", "timeout", d)}
	}
	return min(d, queryTimeout)
}

func (p *params) queryOpts() promql.QueryOpts {
	var lookback time.Duration
	if text := p.value("lookback_delta"); text != "" {
		d, err := parseDuration(text)
		if err != nil && p.err == nil {
			p.err = &apiError{badData, fmt.Errorf("error parsing lookback delta duration: %w", err)}
		}
		lookback = d
	}
	return promql.NewPrometheusQueryOpts(false, lookback, nil)
}

// parseTime reads seconds since 1970 or RFC 3339.
func parseTime(text string) (time.Time, error) {
	if t, err := strconv.ParseFloat(text, 64); err == nil {
		seconds, fraction := math.Modf(t)
		fraction = math.Round(fraction*1000) / 1000
		return time.Unix(int64(seconds), int64(fraction*float64(time.Second))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
}

// parseDuration reads seconds or a Prometheus duration such as 1m30s.
func parseDuration(text string) (time.Duration, error) {
	if d, err := strconv.ParseFloat(text, 64); err == nil {
		nanoseconds := d * float64(time.Second)
		if math.IsNaN(nanoseconds) || nanoseconds >= math.MaxInt64 || nanoseconds < math.MinInt64 {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", text)
		}
		return time.Duration(nanoseconds), nil
	}
	if d, err := model.ParseDuration(text); err == nil {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot parse %q to a valid duration", text)
}
