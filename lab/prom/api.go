package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/stats"
)

// maxPoints is Prometheus' limit on the points of one series in a range query.
const maxPoints = 11000

// Handler serves the part of Prometheus' HTTP API that queries need:
//
//	GET, POST /api/v1/query        query, time, timeout, limit, lookback_delta, stats
//	GET, POST /api/v1/query_range  the same with start, end, step instead of time
//	GET       /-/ready, /-/healthy
//
// Everything else is 404. Answers and errors are written as Prometheus writes them.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, query := range map[string]queryFunc{
		"/api/v1/query":       s.instantQuery,
		"/api/v1/query_range": s.rangeQuery,
	} {
		mux.HandleFunc("GET "+path, answer(query))
		mux.HandleFunc("POST "+path, answer(query))
	}
	ok := func(state string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "Prometheus Server is "+state+".\n")
		}
	}
	mux.HandleFunc("GET /-/ready", ok("Ready"))
	mux.HandleFunc("GET /-/healthy", ok("Healthy"))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.URL.Path+" is not served here; this server has /api/v1/query and /api/v1/query_range", http.StatusNotFound)
	})
	return mux
}

// queryFunc builds the query of a request and returns the context to run it in.
type queryFunc func(ctx context.Context, p *params) (promql.Query, error)

func (s *Server) instantQuery(ctx context.Context, p *params) (promql.Query, error) {
	at, opts := p.time("time", time.Now()), p.queryOpts()
	if p.err != nil {
		return nil, p.err
	}
	return s.engine.NewInstantQuery(ctx, s.db, opts, p.value("query"), at)
}

func (s *Server) rangeQuery(ctx context.Context, p *params) (promql.Query, error) {
	start, end := p.requiredTime("start"), p.requiredTime("end")
	if end.Before(start) {
		p.fail("end", errors.New("end timestamp must not be before start time"))
	}
	step := p.requiredDuration("step")
	if step <= 0 {
		p.fail("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if p.err == nil && end.Sub(start)/step > maxPoints {
		p.err = &apiError{badData, errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")}
	}
	opts := p.queryOpts()
	if p.err != nil {
		return nil, p.err
	}
	return s.engine.NewRangeQuery(ctx, s.db, opts, p.value("query"), start, end, step)
}

func answer(build queryFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := &params{r: r}
		limit, timeout := p.limit(), p.timeout()
		if p.err != nil {
			writeError(w, p.err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		query, err := build(ctx, p)
		if err != nil {
			writeError(w, constructionError(err))
			return
		}
		defer query.Close()
		result := query.Exec(ctx)
		if result.Err != nil {
			writeError(w, executionError(result.Err))
			return
		}
		var statistics stats.QueryStats
		if p.value("stats") != "" {
			statistics = stats.NewQueryStats(query.Stats())
		}
		writeResult(w, truncated(result, limit), p.value("query"), statistics)
	}
}

// truncated cuts a vector or matrix to the limit, with a warning; 0 is no limit.
func truncated(result *promql.Result, limit int) *promql.Result {
	cut := false
	switch v := result.Value.(type) {
	case promql.Vector:
		if cut = limit > 0 && len(v) > limit; cut {
			result.Value = v[:limit]
		}
	case promql.Matrix:
		if cut = limit > 0 && len(v) > limit; cut {
			result.Value = v[:limit]
		}
	}
	if cut {
		result.Warnings = result.Warnings.Add(fmt.Errorf("results truncated due to limit"))
	}
	return result
}
