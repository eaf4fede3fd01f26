package load

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/lab/httpmetrics"
)

// Snapshot is what was sent and answered up to a moment, or between two.
type Snapshot struct {
	// Seconds is how long the load ran.
	Seconds float64 `json:"seconds"`
	// Sent counts the requests sent, Answered those that are over, with an answer
	// or with a failure. The difference is in flight.
	Sent     int64 `json:"sent"`
	Answered int64 `json:"answered"`
	// Skipped counts what was due and not sent, as too many were in flight.
	Skipped int64 `json:"skipped"`
	// Errors counts answers of 500 and above, and requests without an answer.
	Errors int64 `json:"errors"`
	// LastError is the last reason why there was no answer; empty if all were answered.
	LastError string `json:"lastError,omitempty"`
	// Versions are the answers by X-App-Version, sorted. Requests that no
	// version answered are under "none".
	Versions []Version `json:"versions"`
}

// Version is what one version answered.
type Version struct {
	Version string `json:"version"`
	// Requests counts its answers, Errors those of 500 and above.
	Requests int64 `json:"requests"`
	Errors   int64 `json:"errors"`
	// Share is Requests over all Answered, 0 to 1.
	Share float64 `json:"share"`
	// MeanSeconds is how long its answers took on average.
	MeanSeconds float64 `json:"meanSeconds"`
	// Codes counts its answers by status code; 0 means no answer.
	Codes map[int]int64 `json:"codes"`

	seconds float64
}

// Snapshot reads the counters; it can be called while Run runs.
func (g *Generator) Snapshot() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Snapshot{Sent: g.counts.sent, Skipped: g.counts.skipped, LastError: g.counts.lastError, Versions: []Version{}}
	switch {
	case g.started.IsZero():
	case g.stopped.IsZero():
		s.Seconds = time.Since(g.started).Seconds()
	default:
		s.Seconds = g.stopped.Sub(g.started).Seconds()
	}
	for _, v := range g.counts.versions {
		v := *v
		v.Codes = maps.Clone(v.Codes)
		s.Versions = append(s.Versions, v)
	}
	s.sum()
	return s
}

// Since is what happened between an earlier snapshot and this one.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	d := Snapshot{
		Seconds: s.Seconds - earlier.Seconds, Sent: s.Sent - earlier.Sent,
		Skipped: s.Skipped - earlier.Skipped, Versions: []Version{},
	}
	if s.unanswered() > earlier.unanswered() {
		d.LastError = s.LastError
	}
	for _, v := range s.Versions {
		before := earlier.Of(v.Version)
		v.Codes = maps.Clone(v.Codes)
		for code, n := range before.Codes {
			if v.Codes[code] -= n; v.Codes[code] == 0 {
				delete(v.Codes, code)
			}
		}
		v.Requests, v.Errors, v.seconds = v.Requests-before.Requests, v.Errors-before.Errors, v.seconds-before.seconds
		if v.Requests > 0 {
			d.Versions = append(d.Versions, v)
		}
	}
	d.sum()
	return d
}

// Of is what the version answered; all zero if nothing.
func (s Snapshot) Of(version string) Version {
	for _, v := range s.Versions {
		if v.Version == version {
			return v
		}
	}
	return Version{Version: version}
}

// unanswered counts the requests without a complete answer.
func (s Snapshot) unanswered() (n int64) {
	for _, v := range s.Versions {
		n += v.Codes[0]
	}
	return n
}

// sum derives the totals, the shares and the means, and sorts.
func (s *Snapshot) sum() {
	s.Answered, s.Errors = 0, 0
	for _, v := range s.Versions {
		s.Answered += v.Requests
		s.Errors += v.Errors
	}
	for i := range s.Versions {
		v := &s.Versions[i]
		v.Share = float64(v.Requests) / float64(s.Answered)
		v.MeanSeconds = v.seconds / float64(v.Requests)
	}
	slices.SortFunc(s.Versions, func(a, b Version) int { return strings.Compare(a.Version, b.Version) })
}

type counts struct {
	sent, skipped int64
	lastError     string
	versions      map[string]*Version
}

func newCounts() counts { return counts{versions: map[string]*Version{}} }

func (c *counts) add(code int, version string, took time.Duration, err error) {
	if version == "" {
		version = httpmetrics.NoVersion
	}
	v := c.versions[version]
	if v == nil {
		v = &Version{Version: version, Codes: map[int]int64{}}
		c.versions[version] = v
	}
	v.Requests++
	v.Codes[code]++
	v.seconds += took.Seconds()
	if code >= 500 || err != nil {
		v.Errors++
	}
	if err != nil {
		c.lastError = err.Error()
	}
}
