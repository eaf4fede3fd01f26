package render

import (
	"bytes"
)

// document is one YAML document of a file.
type document struct {
	text []byte
	// line at which text starts in the file, from 1.
	line int
}

var (
	bom   = []byte("\xef\xbb\xbf")
	start = []byte("---")
	end   = []byte("...")
)

// documents cuts a YAML file at its document markers. YAML forbids a line that
// starts with a marker inside any scalar, so that looking at lines is enough.
// Documents that hold nothing but comments are kept: only decoding tells.
func documents(file []byte) []document {
	file = bytes.TrimPrefix(file, bom)
	var out []document
	from, fromLine, line := 0, 1, 0
	cut := func(to, nextLine int) {
		if text := file[from:to]; len(bytes.TrimSpace(text)) > 0 {
			out = append(out, document{text: text, line: fromLine})
		}
		from, fromLine = to, nextLine
	}
	for pos := 0; pos < len(file); {
		line++
		next := lineEnd(file, pos)
		switch text := file[pos:next]; {
		case isMarker(text, start):
			if !onlyDirectives(file[from:pos]) {
				cut(pos, line)
			}
		case isMarker(text, end):
			cut(next, line+1)
		}
		pos = next
	}
	cut(len(file), line)
	return out
}

// lineEnd is the offset after the line that starts at pos.
func lineEnd(file []byte, pos int) int {
	if i := bytes.IndexByte(file[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(file)
}

// isMarker is true for a line that is the marker, alone or followed by a space.
func isMarker(line, marker []byte) bool {
	rest, found := bytes.CutPrefix(line, marker)
	return found && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r')
}

// onlyDirectives is true for the %YAML and %TAG lines above a marker: they
// belong to the document that the marker begins.
func onlyDirectives(text []byte) bool {
	found := false
	for _, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0, line[0] == '#':
		case line[0] == '%':
			found = true
		default:
			return false
		}
	}
	return found
}
