package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report says where and how Run tells of the load.
type Report struct {
	Out io.Writer
	// Interval is how often a line is written. Default 1 s.
	Interval time.Duration
	// JSON writes each line, and the total, as a JSON object.
	JSON bool
}

// ErrNoAnswer says that not one request got an answer.
var ErrNoAnswer = errors.New("no request was answered")

// Run generates load, writes a line every interval and the total at the end. If
// not one request was answered it returns an ErrNoAnswer with the last reason.
func Run(ctx context.Context, o Options, report Report) error {
	g, err := New(o)
	if err != nil {
		return err
	}
	return g.RunAndReport(ctx, report)
}

// RunAndReport is Run for a Generator that others look at, too.
func (g *Generator) RunAndReport(ctx context.Context, report Report) error {
	if report.Interval <= 0 {
		report.Interval = time.Second
	}
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	ticker := time.NewTicker(report.Interval)
	defer ticker.Stop()
	var last Snapshot
	for {
		select {
		case <-ticker.C:
			now := g.Snapshot()
			if err := report.write(now.Since(last), now.Seconds, false); err != nil {
				return err
			}
			last = now
		case err := <-done:
			if err != nil {
				return err
			}
			total := g.Snapshot()
			if err := report.write(total, total.Seconds, true); err != nil {
				return err
			}
			return answered(total)
		}
	}
}

func answered(total Snapshot) error {
	if total.Sent > 0 && total.unanswered() == total.Answered {
		return fmt.Errorf("%w: %s", ErrNoAnswer, total.LastError)
	}
	return nil
}

// jsonLine is a Snapshot with its place in the load.
type jsonLine struct {
	// At is the seconds since the load began.
	At    float64 `json:"at"`
	Total bool    `json:"total"`
	Snapshot
}

func (r Report) write(s Snapshot, at float64, total bool) error {
	var err error
	if r.JSON {
		err = json.NewEncoder(r.Out).Encode(jsonLine{At: at, Total: total, Snapshot: s})
	} else {
		head := fmt.Sprintf("%6.1fs", at)
		if total {
			head = "  total"
		}
		_, err = fmt.Fprintf(r.Out, "%s  %s\n", head, s)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// String is one line: how many requests, and each version's share and errors.
func (s Snapshot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests", s.Answered)
	for _, v := range s.Versions {
		fmt.Fprintf(&b, "  %s %.1f%% (%d, %s)", v.Version, 100*v.Share, v.Requests, plural(v.Errors, "error"))
	}
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "  %d not sent", s.Skipped)
	}
	if s.LastError != "" {
		fmt.Fprintf(&b, "  last failure: %s", s.LastError)
	}
	return b.String()
}

func plural(n int64, word string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}
