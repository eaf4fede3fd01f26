package graphite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/pushback-dev/pushback/analysis"
)

// series is one target's. A datapoint is a value and a time in seconds; both may be
// texts, and a value may be null.
type series struct {
	Target string   `json:"target"`
	Points *[][]any `json:"datapoints"`
}

func read(body []byte) (analysis.Sample, error) {
	var all []series
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // Graphite writes infinity as 1e9999
	if err := decoder.Decode(&all); err != nil {
		return analysis.Sample{}, fmt.Errorf("the answer is not Graphite's: %w", err)
	}
	if all == nil {
		return analysis.Sample{}, errors.New("the answer is not Graphite's: it is no list of series")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return analysis.Sample{}, errors.New("the answer is not Graphite's: it goes on behind the list of series")
	}
	values := []any{}
	var times span
	for _, s := range all {
		if s.Points == nil {
			return analysis.Sample{}, errors.New("the answer is not Graphite's: a series has no datapoints")
		}
		for _, point := range *s.Points {
			value, at, err := readPoint(point)
			if err != nil {
				return analysis.Sample{}, fmt.Errorf("series %q: %w", s.Target, err)
			}
			if value != nil {
				values = append(values, *value)
				times.include(at)
			}
		}
	}
	return analysis.Sample{Value: values, Metadata: times.metadata()}, nil
}

// readPoint gives nil for a datapoint without a value.
func readPoint(point []any) (value *float64, at float64, err error) {
	if len(point) != 2 {
		return nil, 0, fmt.Errorf("a datapoint has %d parts, not a value and a time", len(point))
	}
	if point[0] == nil {
		return nil, 0, nil
	}
	v, err := number(point[0])
	if err != nil {
		return nil, 0, err
	}
	if point[1] != nil {
		at, err = number(point[1])
	}
	return &v, at, err
}

// number reads a number of JSON, or one in a text such as "NaN".
func number(v any) (float64, error) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	default:
		return 0, fmt.Errorf("a datapoint holds %v, not numbers", v)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range is an infinity
		return 0, fmt.Errorf("a datapoint holds %q, not a number", text)
	}
	return f, nil
}

// span of the datapoints' times in seconds; 0 where there are none.
type span struct{ oldest, newest float64 }

func (s *span) include(at float64) {
	if !(at > 0 && at < 1e11) { // none, or no time
		return
	}
	if s.oldest == 0 || at < s.oldest {
		s.oldest = at
	}
	s.newest = max(s.newest, at)
}

func (s *span) metadata() map[string]string {
	if s.newest == 0 {
		return nil
	}
	text := func(at float64) string { return time.Unix(int64(at), 0).UTC().Format(time.RFC3339) }
	return map[string]string{OldestMetadata: text(s.oldest), NewestMetadata: text(s.newest)}
}
