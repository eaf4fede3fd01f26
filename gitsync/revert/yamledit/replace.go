package yamledit

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar replaces one value by the other's, in head's quotes if it has some.
func (d *differ) scalar(h, s *yaml.Node, path string) (escalate bool, err error) {
	if err := d.fenced(h, s); err != nil {
		return false, err
	}
	to, from := d.head.spans[h], d.stored.spans[s]
	if to.implicit || from.implicit || d.lines(d.stored, from) || d.lines(d.head, to) {
		return d.node(h, s, path)
	}
	token := d.stored.data[from.start:from.end]
	d.out.Scalars = append(d.out.Scalars, Change{
		Path: path, Line: h.Line, start: to.start, end: to.end, text: spell(token, h, s, to.flow), node: h, want: s,
	})
	return false, nil
}

// lines says that a node is written on more than one line.
func (d *differ) lines(f *File, s span) bool { return f.lineEnd(s.start) < s.end }

// spell is the text of s for the place of h: s's own, but in the quotes of h
// where that changes nothing, so that a value keeps the style of its file.
func spell(token []byte, h, s *yaml.Node, flow bool) []byte {
	if s.ShortTag() != "!!str" || s.Anchor != "" || s.Style&yaml.TaggedStyle != 0 {
		return token
	}
	simple := isSimple(s.Value)
	quotes := map[yaml.Style]string{yaml.DoubleQuotedStyle: `"`, yaml.SingleQuotedStyle: `'`}
	if q := quotes[h.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle)]; q != "" && simple {
		return []byte(q + s.Value + q)
	}
	if flow && s.Style == 0 && strings.ContainsAny(s.Value, ",[]{}") && simple {
		return []byte(`"` + s.Value + `"`)
	}
	return token
}

// isSimple is true for text that means itself in both kinds of quotes.
func isSimple(text string) bool {
	for _, r := range text {
		if r < ' ' || r > '~' || r == '"' || r == '\'' || r == '\\' {
			return false
		}
	}
	return true
}

// replace makes the change of a whole node. It is impossible where the old
// text can't stand: text by indentation inside brackets, or at the place of an
// item of a list that is written in another way.
func (d *differ) replace(h, s *yaml.Node, path string) (change Change, possible bool, err error) {
	if err := d.fenced(h, s); err != nil {
		return Change{}, false, err
	}
	to, from := d.head.spans[h], d.stored.spans[s]
	change = Change{Path: path, Line: h.Line, node: h, want: s}
	if from.implicit {
		return Change{}, false, nil
	}
	byIndent := from.block || d.isBlockScalar(s)
	switch {
	case to.flow && byIndent:
		return Change{}, false, nil
	case to.flow, !byIndent && !to.implicit && !to.block && !d.isBlockScalar(h):
		change.start, change.end = to.start, to.end
		change.text = d.reindent(d.stored.data[from.start:from.end], to.column-from.column)
	case from.block && to.block && h.Kind == s.Kind && h.Anchor == "" && s.Anchor == "":
		change.start, change.end = to.start, d.head.extend(to)
		change.text = d.reindent(d.stored.data[from.start:d.stored.extend(from)], to.column-from.column)
	case to.slot >= 0 && from.slot >= 0:
		change.start, change.end = to.slot, d.head.extend(to)
		shift := d.head.spans[to.parent].column - d.stored.spans[from.parent].column
		change.text = d.reindent(d.stored.data[from.slot:d.stored.extend(from)], shift)
	default:
		return Change{}, false, nil
	}
	return change, true, nil
}

func (d *differ) isBlockScalar(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// extend is the end of a block with the comments that belong to it: behind its
// last value on the same line, and on lines of their own that are indented no
// less than the block.
func (f *File) extend(s span) int {
	if s.flow || s.implicit {
		return s.end
	}
	end := s.end
	if rest := bytes.TrimLeft(f.data[end:f.lineEnd(end)], " \t"); len(rest) > 0 && rest[0] == '#' {
		end = f.lineEnd(end)
	}
	if !s.block || f.lineEnd(end) != end {
		return end
	}
	for line := f.afterBreak(end); line > end && line < len(f.data); {
		lineEnd := f.lineEnd(line)
		indentation := f.spaces(line)
		isComment := line+indentation < lineEnd && f.data[line+indentation] == '#'
		switch {
		case isComment && indentation >= s.column-1 && indentation > 0:
			end = lineEnd
		case !f.isBlankLine(line):
			return end
		}
		if f.afterBreak(lineEnd) == lineEnd {
			return end
		}
		line = f.afterBreak(lineEnd)
	}
	return end
}

// reindent shifts every line but the first, and gives it head's line ends.
func (d *differ) reindent(text []byte, shift int) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if i == 0 || line == "" {
			continue
		}
		body := strings.TrimLeft(line, " ")
		lines[i] = strings.Repeat(" ", max(0, len(line)-len(body)+shift)) + body
	}
	return []byte(strings.Join(lines, d.head.newline()))
}

// newline is how most lines of a file end.
func (f *File) newline() string {
	crlf := bytes.Count(f.data, []byte("\r\n"))
	if crlf*2 > bytes.Count(f.data, []byte("\n")) {
		return "\r\n"
	}
	return "\n"
}

// fenced refuses nodes that share an anchor with the rest of their files: one
// that holds them and is used elsewhere, or one inside that is defined or used
// outside.
func (d *differ) fenced(h, s *yaml.Node) error {
	if len(d.head.anchors) == 0 && len(d.stored.anchors) == 0 {
		return nil
	}
	for at := h; at != nil; at = d.head.spans[at].parent {
		if at.Anchor != "" && d.head.usedOutside(at, d.headRoot) {
			return &AnchorError{Anchor: at.Anchor, Line: at.Line}
		}
	}
	if name, line := d.head.crosses(h); name != "" {
		return &AnchorError{Anchor: name, Line: line}
	}
	if name, _ := d.stored.crosses(s); name != "" {
		return &AnchorError{Anchor: name, Line: h.Line}
	}
	return nil
}

// usedOutside says whether the anchor of a node has an alias that isn't inside part.
func (f *File) usedOutside(anchored, part *yaml.Node) bool {
	for n := range f.spans {
		if n.Kind == yaml.AliasNode && n.Alias == anchored && !f.within(n, part) {
			return true
		}
	}
	return false
}

// crosses finds an anchor that joins the inside of a node with its outside.
func (f *File) crosses(part *yaml.Node) (anchor string, line int) {
	for n := range f.spans {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			continue
		}
		if f.within(n, part) != f.within(n.Alias, part) {
			if anchor == "" || n.Value < anchor {
				anchor, line = n.Value, n.Line
			}
		}
	}
	return anchor, line
}

func (f *File) within(n, part *yaml.Node) bool {
	for ; n != nil; n = f.spans[n].parent {
		if n == part {
			return true
		}
	}
	return false
}
