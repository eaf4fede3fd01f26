package datadog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// defaultAggregator makes one number of a series: its last.
const defaultAggregator = "last"

type queryV2 struct {
	Aggregator string `json:"aggregator"`
	DataSource string `json:"data_source"`
	Name       string `json:"name"`
	Query      string `json:"query"`
}

type formulaV2 struct {
	Formula string `json:"formula"`
}

type attributesV2 struct {
	// From and To are in milliseconds.
	From     int64       `json:"from"`
	To       int64       `json:"to"`
	Queries  []queryV2   `json:"queries"`
	Formulas []formulaV2 `json:"formulas"`
}

func requestV2(ctx context.Context, origin *url.URL, m v1alpha1.DatadogMetric, from, to time.Time) (*http.Request, error) {
	queries := m.Queries
	if len(queries) == 0 && m.Query != "" {
		queries = map[string]string{"query": m.Query}
	}
	if len(queries) == 0 {
		return nil, errNoQuery
	}
	// Whole seconds, as Argo asks.
	attributes := attributesV2{From: from.Unix() * 1000, To: to.Unix() * 1000, Formulas: []formulaV2{}}
	for _, key := range slices.Sorted(maps.Keys(queries)) {
		attributes.Queries = append(attributes.Queries, queryV2{
			Aggregator: cmp.Or(m.Aggregator, defaultAggregator), DataSource: "metrics", Name: key, Query: queries[key],
		})
	}
	if m.Formula != "" {
		attributes.Formulas = append(attributes.Formulas, formulaV2{m.Formula})
	}
	body, err := json.Marshal(map[string]any{"data": map[string]any{"type": "scalar_request", "attributes": attributes}})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, origin.JoinPath("api", "v2", "query", "scalar").String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// columnV2 is a column of a table. Values are numbers and nulls, or lists of texts in a
// column of the type group.
type columnV2 struct {
	Name   string          `json:"name"`
	Type   string          `json:"type"`
	Values json.RawMessage `json:"values"`
}

func readV2(body []byte) (any, error) {
	var answer struct {
		// Errors are one text, by Datadog's specification.
		Errors string `json:"errors"`
		Data   *struct {
			Errors     string `json:"errors"`
			Attributes struct {
				Columns *[]columnV2 `json:"columns"`
			} `json:"attributes"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("the answer is not Datadog's: %w", err)
	}
	if answer.Errors != "" {
		return nil, fmt.Errorf("the query failed: %s", answer.Errors)
	}
	if answer.Data == nil {
		return nil, errors.New("the answer is not Datadog's: it has no data")
	}
	if answer.Data.Errors != "" {
		return nil, fmt.Errorf("the query failed: %s", answer.Data.Errors)
	}
	if answer.Data.Attributes.Columns == nil {
		return nil, errors.New("the answer is not Datadog's: its data has no columns")
	}
	values, err := rows(*answer.Data.Attributes.Columns)
	if err != nil {
		return nil, fmt.Errorf("the answer is not Datadog's: %w", err)
	}
	return valueOf(values), nil
}

// rows are the values of the one column of numbers, in the order of their groups.
func rows(columns []columnV2) ([]any, error) {
	var groups [][][]string
	var numbers []*float64
	found := 0
	for _, c := range columns {
		if c.Type == "group" {
			var values [][]string
			if err := json.Unmarshal(c.Values, &values); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.Name, err)
			}
			groups = append(groups, values)
			continue
		}
		found++
		if len(c.Values) == 0 {
			continue // no data
		}
		if err := json.Unmarshal(c.Values, &numbers); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	if found > 1 {
		return nil, fmt.Errorf("it has %d columns of numbers where one was asked for", found)
	}
	return inOrder(numbers, groups), nil
}

func inOrder(numbers []*float64, groups [][][]string) []any {
	type row struct {
		group string
		value any
	}
	table := make([]row, len(numbers))
	for i, n := range numbers {
		if n != nil {
			table[i].value = *n
		}
		for _, g := range groups {
			if i < len(g) {
				table[i].group += strings.Join(g[i], "\x00") + "\x01"
			}
		}
	}
	slices.SortStableFunc(table, func(a, b row) int { return strings.Compare(a.group, b.group) })
	values := make([]any, len(table))
	for i, r := range table {
		values[i] = r.value
	}
	return values
}
