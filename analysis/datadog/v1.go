package datadog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errNoQuery says that there is nothing to ask.
var errNoQuery = errors.New("there is no query")

func requestV1(ctx context.Context, origin *url.URL, query string, from, to time.Time) (*http.Request, error) {
	if query == "" {
		return nil, fmt.Errorf("%w: the API v1 takes query, and neither queries nor a formula", errNoQuery)
	}
	target := origin.JoinPath("api", "v1", "query")
	target.RawQuery = url.Values{
		"query": {query},
		"from":  {strconv.FormatInt(from.Unix(), 10)},
		"to":    {strconv.FormatInt(to.Unix(), 10)},
	}.Encode()
	return http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
}

// seriesV1 is a series of points: a time in milliseconds, and a number or null.
type seriesV1 struct {
	Scope      string       `json:"scope"`
	Expression string       `json:"expression"`
	Points     [][]*float64 `json:"pointlist"`
}

func readV1(body []byte) (any, error) {
	var answer struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Series json.RawMessage `json:"series"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("the answer is not Datadog's: %w", err)
	}
	if answer.Status == "error" || answer.Error != "" {
		return nil, fmt.Errorf("the query failed: %s", answer.Error)
	}
	if answer.Series == nil {
		return nil, errors.New("the answer is not Datadog's: it has no series")
	}
	var series []seriesV1
	if err := json.Unmarshal(answer.Series, &series); err != nil {
		return nil, fmt.Errorf("the answer is not Datadog's: %w", err)
	}
	slices.SortStableFunc(series, func(a, b seriesV1) int {
		return strings.Compare(a.Scope+"\x00"+a.Expression, b.Scope+"\x00"+b.Expression)
	})
	values := make([]any, len(series))
	for i, s := range series {
		value, err := s.last()
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return valueOf(values), nil
}

// last is the last point's number; a point with null is the same as one left out.
func (s seriesV1) last() (any, error) {
	for _, point := range slices.Backward(s.Points) {
		if len(point) != 2 {
			return nil, fmt.Errorf("the answer is not Datadog's: a point has %d values, not a time and a number", len(point))
		}
		if point[1] != nil {
			return *point[1], nil
		}
	}
	return nil, nil
}

// valueOf is what conditions see of the values of all series or rows.
func valueOf(values []any) any {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return values[0]
	}
	return values
}
