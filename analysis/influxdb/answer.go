package influxdb

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	influx "github.com/influxdata/influxdb-client-go/v2/api"
)

// valueColumn holds a row's value.
const valueColumn = "_value"

// errNoTables says that an answer is not InfluxDB's. The client would take it for one of
// no rows.
var errNoTables = errors.New("the answer is not InfluxDB's: it is no annotated CSV")

// errCutOff says that an answer ends before the rows could begin.
var errCutOff = errors.New("the answer is not InfluxDB's: a table ends before its header")

// read gives the values of annotated CSV; nothing at all is no rows.
func read(answer string) (any, error) {
	text := strings.TrimSpace(answer)
	if text != "" && text[0] != '#' {
		return nil, errNoTables
	}
	tables := influx.NewQueryTableResult(io.NopCloser(strings.NewReader(answer)))
	values := []any{}
	for tables.Next() {
		columns := tables.Record().Values()
		value, ok := columns[valueColumn]
		if !ok {
			return nil, fmt.Errorf("a table has no column %s, only %s: name the one that counts so, as by rename()",
				valueColumn, strings.Join(slices.Sorted(maps.Keys(columns)), ", "))
		}
		plain, err := valueOf(value)
		if err != nil {
			return nil, err
		}
		values = append(values, plain)
	}
	if err := tables.Err(); err != nil {
		return nil, fmt.Errorf("the query failed: %w", err)
	}
	if text != "" && !hasHeader(tables) {
		return nil, errCutOff
	}
	return values, nil
}

// hasHeader says that the last table has names of columns behind its annotations.
func hasHeader(tables *influx.QueryTableResult) bool {
	table := tables.TableMetadata()
	if table == nil {
		return false
	}
	for _, column := range table.Columns() {
		if column.Name() != "" {
			return true
		}
	}
	return false
}

// valueOf is a value that conditions know.
func valueOf(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, float64, string:
		return v, nil
	case int64:
		return float64(v), nil
	case uint64:
		return float64(v), nil
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	case time.Duration:
		return v.String(), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	}
	return nil, fmt.Errorf("a value is a %T, which conditions don't know", v)
}
