package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// timeline prints what happens, as it happens, one line each:
//
//	12.4s  weight       canary 25%  (v2 got 25.2% of the last 119 requests)
type timeline struct {
	out   io.Writer
	start time.Time
	mu    sync.Mutex
	last  map[string]string
}

func newTimeline(out io.Writer) *timeline {
	return &timeline{out: out, start: time.Now(), last: map[string]string{}}
}

// chapter prints a heading.
func (t *timeline) chapter(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "\n%s\n", fmt.Sprintf(format, args...))
}

// say prints an event of a kind.
func (t *timeline) say(kind, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%7.1fs  %-11s  %s\n", time.Since(t.start).Seconds(), kind, fmt.Sprintf(format, args...))
}

// tell prints an event if it differs from the last one told under the same key.
func (t *timeline) tell(key, kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.mu.Lock()
	known := t.last[key] == text
	t.last[key] = text
	t.mu.Unlock()
	if !known {
		t.say(kind, "%s", text)
	}
}
