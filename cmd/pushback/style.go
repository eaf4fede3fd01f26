package main

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
)

// style is how a view is drawn: with marks, colours and lines cut to the width on
// a terminal, plain and whole elsewhere.
type style struct {
	rich bool
	// width is the most characters of a line; 0 is any number.
	width int
	// wide shows whole revisions and every measurement.
	wide bool
	// now is what ages are counted to; with the zero time none are shown.
	now time.Time
}

func styleFor(out io.Writer, wide bool) style {
	s := style{wide: wide}
	if !isTerminal(out) {
		return s
	}
	s.rich = os.Getenv("NO_COLOR") == ""
	if width, _, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && !wide {
		s.width = width
	}
	return s
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (s style) mark(state string) string {
	if !s.rich {
		return map[string]string{"done": "[x]", "current": "[>]", "todo": "[ ]"}[state]
	}
	return map[string]string{"done": "\x1b[32m✔\x1b[0m", "current": "\x1b[36m▶\x1b[0m", "todo": "·"}[state]
}

// branch is what stands before a child of a tree, and before its further lines.
func (s style) branch(last bool) (first, further string) {
	switch {
	case s.rich && last:
		return "└─ ", "   "
	case s.rich:
		return "├─ ", "│  "
	case last:
		return "`- ", "   "
	}
	return "|- ", "|  "
}

func (s style) phase(phase string) string {
	colours := map[string]string{
		"Healthy": "32", "Successful": "32", "Running": "32",
		"Degraded": "31", "Failed": "31", "Error": "31", "CrashLoopBackOff": "31", "ImagePullBackOff": "31",
		"Paused": "33", "Inconclusive": "33", "Blocked": "33", "Pending": "33", "Terminating": "33",
	}
	colour, ok := colours[phase]
	if !s.rich || !ok {
		return phase
	}
	return "\x1b[" + colour + "m" + phase + "\x1b[0m"
}

// age of what was created then.
func (s style) age(created time.Time) string {
	if s.now.IsZero() || created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(s.now.Sub(created))
}

// fit cuts the lines of a text to the width. Escapes for colours take no room.
func (s style) fit(text string) string {
	if s.width <= 1 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = s.cut(line)
	}
	return strings.Join(lines, "\n")
}

func (s style) cut(line string) string {
	var out strings.Builder
	length, visible, escaped := printable(line), 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		case visible == s.width-1 && length > s.width:
			out.WriteString("…")
			visible++
			continue
		case visible >= s.width:
			continue
		default:
			visible++
		}
		out.WriteRune(r)
	}
	return out.String()
}

// printable counts the characters of a line that take room.
func printable(line string) int {
	count, escaped := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			count++
		}
	}
	return count
}
