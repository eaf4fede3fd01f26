package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxValue is the most bytes of a value that are kept.
	maxValue = 4 << 10
	// maxMessage is the most bytes of a message that are kept.
	maxMessage = 1 << 10
	truncated  = "…truncated"
)

// Text is a value for people and for the status: NaN, +Inf and -Inf as such, lists
// and maps like JSON, such as [0.5,NaN]. It is not cut.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	write(&b, v)
	return b.String()
}

func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case float64:
		b.WriteString(number(v))
	case string:
		quoted, err := json.Marshal(v)
		if err != nil {
			quoted = []byte(strconv.Quote(v))
		}
		b.Write(quoted)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		writeMap(b, v)
	default:
		fmt.Fprint(b, v)
	}
}

func writeMap(b *strings.Builder, m map[string]any) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		write(b, k)
		b.WriteByte(':')
		write(b, m[k])
	}
	b.WriteByte('}')
}

func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// Truncate cuts text to at most max bytes, at a character, and then says so. Text
// that may hold a secret is redacted first: half a secret can't be found any more.
func Truncate(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + truncated
}

// kindOf names the type of a value for people.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "map"
	case int, int32, int64, float64, json.Number:
		return "number"
	}
	return fmt.Sprintf("%T", v)
}

// isEmpty says that a value is no data: nil, a list without items, a list of nulls (as
// of series of which none has a point), or a list of series (as CloudWatch gives them,
// each with its Values) of which none has a value.
func isEmpty(v any) bool {
	if v == nil {
		return true
	}
	list, ok := v.([]any)
	for _, item := range list {
		if item != nil && !isEmptySeries(item) {
			return false
		}
	}
	return ok
}

func isEmptySeries(v any) bool {
	series, _ := v.(map[string]any)
	values, ok := series["Values"].([]any)
	return ok && len(values) == 0
}

// hasNaN says that a value is NaN or holds it.
func hasNaN(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v)
	case []any:
		for _, item := range v {
			if hasNaN(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if hasNaN(item) {
				return true
			}
		}
	}
	return false
}
