package yamledit

import (
	"bytes"
	"unicode/utf8"
)

// breakLen is the length of a line break at the start of b, or 0. YAML 1.1, and
// so the parser, counts more of them than CR and LF: NEL, LS and PS.
func breakLen(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case b[0] == '\r' && len(b) > 1 && b[1] == '\n':
		return 2
	case b[0] == '\r' || b[0] == '\n':
		return 1
	case bytes.HasPrefix(b, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(b, []byte("\u2028")), bytes.HasPrefix(b, []byte("\u2029")):
		return 3
	}
	return 0
}

// lineStarts are the offsets of all lines; the first begins after the mark of
// the byte order, which the parser doesn't count.
func lineStarts(data []byte, from int) []int {
	starts := []int{from}
	for i := from; i < len(data); {
		n := breakLen(data[i:])
		if n == 0 {
			i++
			continue
		}
		i += n
		starts = append(starts, i)
	}
	return starts
}

// offset of a position that counts lines and characters from 1.
func (f *File) offset(line, column int) int {
	if line < 1 || line > len(f.lines) {
		return -1
	}
	at := f.lines[line-1]
	for ; column > 1 && at < len(f.data); column-- {
		_, size := utf8.DecodeRune(f.data[at:])
		at += size
	}
	return at
}

// lineEnd is the offset of the break that ends the line of at, or the end of the file.
func (f *File) lineEnd(at int) int {
	for at < len(f.data) && breakLen(f.data[at:]) == 0 {
		at++
	}
	return at
}

// afterBreak is the start of the next line.
func (f *File) afterBreak(at int) int { return at + breakLen(f.data[at:]) }

// spaces counts the spaces at the start of a line.
func (f *File) spaces(at int) int {
	n := 0
	for at+n < len(f.data) && f.data[at+n] == ' ' {
		n++
	}
	return n
}

func (f *File) isBlankLine(at int) bool {
	return len(bytes.Trim(f.data[at:f.lineEnd(at)], " \t")) == 0
}

// skipGap passes white space, line breaks and comments, and any of extra.
func (f *File) skipGap(at int, extra string) int {
	for at < len(f.data) {
		c := f.data[at]
		switch {
		case c == ' ' || c == '\t' || bytes.IndexByte([]byte(extra), c) >= 0:
			at++
		case breakLen(f.data[at:]) > 0:
			at += breakLen(f.data[at:])
		case c == '#':
			at = f.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// skipProperties passes anchors and tags, and the gap behind them if there are any.
func (f *File) skipProperties(at int) int {
	for at < len(f.data) && (f.data[at] == '&' || f.data[at] == '!') {
		for at < len(f.data) && !bytes.ContainsRune([]byte(" \t"), rune(f.data[at])) && breakLen(f.data[at:]) == 0 {
			at++
		}
		at = f.skipGap(at, "")
	}
	return at
}

// doubleQuoted is the end of a scalar that starts with ".
func (f *File) doubleQuoted(at int) int {
	for at++; at < len(f.data); at++ {
		switch f.data[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return -1
}

// singleQuoted is the end of a scalar that starts with '.
func (f *File) singleQuoted(at int) int {
	for at++; at < len(f.data); at++ {
		if f.data[at] != '\'' {
			continue
		}
		if at+1 < len(f.data) && f.data[at+1] == '\'' {
			at++
			continue
		}
		return at + 1
	}
	return -1
}

// plain is the end of a plain scalar: its bytes are its value, but that breaks
// and the space around them are folded.
func (f *File) plain(at int, value string) int {
	for value != "" {
		if at >= len(f.data) {
			return -1
		}
		gap, breaks := f.fold(at)
		switch {
		case breaks == 0:
			if f.data[at] != value[0] {
				return -1
			}
			at, value = at+1, value[1:]
		case breaks == 1:
			if value[0] != ' ' {
				return -1
			}
			at, value = gap, value[1:]
		default:
			at = gap
			for range breaks - 1 {
				if value == "" || value[0] != '\n' {
					return -1
				}
				value = value[1:]
			}
		}
	}
	return at
}

// fold measures a run of white space: where it ends, and its breaks.
func (f *File) fold(at int) (end, breaks int) {
	for at < len(f.data) {
		if n := breakLen(f.data[at:]); n > 0 {
			at += n
			breaks++
		} else if f.data[at] == ' ' || f.data[at] == '\t' {
			at++
		} else {
			break
		}
	}
	return at, breaks
}

// blockScalar is the end of a literal or folded scalar that starts with | or >
// in a collection that is indented by so many columns (-1 for none): behind its
// last line, without the break. Blank lines at the end belong to it if it keeps them.
func (f *File) blockScalar(at, indent int) int {
	headerEnd := f.lineEnd(at)
	keep, explicit := false, 0
	for _, c := range f.data[at+1 : headerEnd] {
		switch {
		case c == '+':
			keep = true
			continue
		case c >= '1' && c <= '9':
			explicit = int(c - '0')
			continue
		case c == '-':
			continue
		}
		break
	}
	least := max(indent+1, 1)
	if explicit > 0 {
		least = max(indent, 0) + explicit
	}
	determined := explicit > 0
	end, line := headerEnd, f.afterBreak(headerEnd)
	for line < len(f.data) && line > headerEnd {
		indentation, lineEnd := f.spaces(line), f.lineEnd(line)
		blank := line+indentation == lineEnd && (!determined || indentation <= least)
		if !blank {
			if indentation < least {
				break
			}
			if !determined {
				determined, least = true, indentation
			}
			end = lineEnd
		}
		if f.afterBreak(lineEnd) == lineEnd {
			line = lineEnd
			break
		}
		line = f.afterBreak(lineEnd)
	}
	if keep {
		return f.beforeBreak(line, end)
	}
	return end
}

// beforeBreak is the offset of the break that ends right before line, but not less than least.
func (f *File) beforeBreak(line, least int) int {
	for n := 3; n >= 1; n-- {
		if line-n >= least && breakLen(f.data[line-n:line]) == n {
			return line - n
		}
	}
	return max(line, least)
}
