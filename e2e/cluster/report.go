package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// report turns what "go build -v" prints into progress: a line that is rewritten on a terminal, else a line
// every ten seconds. It keeps what are not names of packages: the compiler's complaints.
type report struct {
	out      io.Writer
	step     string
	total    int // packages at most
	started  time.Time
	terminal bool
	quit     chan struct{}
	ended    sync.WaitGroup

	mu       sync.Mutex
	partial  []byte
	compiled int
	other    []string
}

const maxComplaints = 40 // lines of the compiler that are kept

func newReport(out io.Writer, step string, total int) *report {
	r := &report{out: out, step: step, total: total, started: time.Now(), terminal: isTerminal(out), quit: make(chan struct{})}
	fmt.Fprintf(out, "control plane: building %s, at most %d packages\n", step, total)
	r.ended.Go(r.tick)
	return r
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

func (r *report) tick() {
	every := 10 * time.Second
	if r.terminal {
		every = 500 * time.Millisecond
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-ticker.C:
			if r.terminal {
				fmt.Fprintf(r.out, "\r\x1b[K%s", r.line())
			} else {
				fmt.Fprintln(r.out, r.line())
			}
		}
	}
}

func (r *report) line() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("control plane: building %s, %d of at most %d packages compiled, %s",
		r.step, r.compiled, r.total, time.Since(r.started).Round(time.Second))
}

// Write takes the output of "go build -v".
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, p...)
	for {
		end := bytes.IndexByte(r.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		r.take(string(r.partial[:end]))
		r.partial = r.partial[end+1:]
	}
}

func (r *report) take(line string) {
	switch {
	case line == "":
	case !strings.ContainsAny(line, " \t:#"):
		r.compiled++
	case len(r.other) < maxComplaints && !strings.HasPrefix(line, "go: downloading "):
		r.other = append(r.other, line)
	}
}

// complaints are the lines that name no package.
func (r *report) complaints() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.other, "\n")
}

func (r *report) stop() {
	select {
	case <-r.quit:
	default:
		close(r.quit)
	}
	r.ended.Wait()
}

func (r *report) finished() {
	r.stop()
	if r.terminal {
		fmt.Fprint(r.out, "\r\x1b[K")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "control plane: built %s, %d packages compiled, in %s\n", r.step, r.compiled, time.Since(r.started).Round(time.Second))
}
