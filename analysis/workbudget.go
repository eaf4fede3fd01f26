package analysis

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
)

const (
	// maxWork is what evaluating an expression may take, in units of up to
	// a microsecond: one for each turn of a predicate and for each item that is read.
	maxWork = 500_000
	// workBytes is how many bytes of text are one unit: 2 MB is all that an
	// expression can read or write.
	workBytes = 4
	// workDepth bounds the nesting of a value that is read.
	workDepth = 200
)

// ErrTooMuch says that an expression takes more work than it may.
var ErrTooMuch = errors.New("the expression takes too much work; make its loops, lists or texts smaller")

// workBudget is what is left of the work of one evaluation. The libraries bound the
// size of an expression and count some of its steps. What nests loops, or doubles
// text or lists, they let run on.
type workBudget struct{ left int }

func (b *workBudget) spend(n int) error {
	if n < 0 || n > b.left {
		b.left = 0
		return ErrTooMuch
	}
	b.left -= n
	return nil
}

// text spends for n copies of a text of so many bytes.
func (b *workBudget) text(bytes, n int) error {
	if bytes > 0 && n > maxWork*workBytes/bytes {
		return b.spend(maxWork + 1)
	}
	return b.spend(bytes * n / workBytes)
}

// read spends for a value and all that it holds, as often as it holds it: a list of
// twice the same list is read twice.
func (b *workBudget) read(v any, depth int) error {
	if depth > workDepth {
		return ErrTooMuch
	}
	switch v := v.(type) {
	case nil, bool, float64, int:
		return b.spend(1)
	case string:
		return b.spend(1 + len(v)/workBytes)
	case []float64:
		return b.spend(len(v))
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Slice, reflect.Array:
		return b.readList(r, depth)
	case reflect.Map:
		return b.readMap(r, depth)
	}
	return b.spend(1)
}

// readList spends more for what lies deeper, as text of it is indented.
func (b *workBudget) readList(list reflect.Value, depth int) error {
	if err := b.spend(1 + depth); err != nil {
		return err
	}
	for i := range list.Len() {
		if err := b.read(list.Index(i).Interface(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (b *workBudget) readMap(m reflect.Value, depth int) error {
	if err := b.spend(1 + depth); err != nil {
		return err
	}
	for entries := m.MapRange(); entries.Next(); {
		if err := b.read(entries.Key().Interface(), depth+1); err != nil {
			return err
		}
		if err := b.read(entries.Value().Interface(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// readTop spends for the items of a value, but not for what they hold.
func (b *workBudget) readTop(v any) error {
	if s, ok := v.(string); ok {
		return b.spend(1 + len(s)/workBytes)
	}
	return b.spend(1)
}

// match spends for a text and a pattern: the time is their product.
func (b *workBudget) match(text, pattern any) error {
	s, isText := text.(string)
	p, isPattern := pattern.(string)
	if !isText || !isPattern {
		return nil // package expr says what is wrong
	}
	steps, err := patternSteps(p)
	if err != nil {
		return err
	}
	return b.text(len(s)+1, 1+steps/8)
}

// patternSteps is how many steps a regular expression takes for one character.
func patternSteps(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// matches is expr's operator, of which neither side need be known beforehand.
func (b *workBudget) matches(text, pattern any) (any, error) {
	if text == nil || pattern == nil {
		return false, nil
	}
	s, isText := text.(string)
	p, isPattern := pattern.(string)
	if !isText || !isPattern {
		return nil, fmt.Errorf("matches wants two strings, got %s and %s", kindOf(text), kindOf(pattern))
	}
	if err := b.match(s, p); err != nil {
		return nil, err
	}
	return regexp.MatchString(p, s)
}
