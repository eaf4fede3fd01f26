package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// CloudWatchQuery is one of the metricDataQueries of a metric, AWS's MetricDataQuery with
// names as Argo writes them; AWS's own, such as Id, are understood too.
type CloudWatchQuery struct {
	ID         string              `json:"id"`
	AccountID  string              `json:"accountId"`
	Expression string              `json:"expression"`
	Label      string              `json:"label"`
	MetricStat *CloudWatchStat     `json:"metricStat"`
	Period     *intstr.IntOrString `json:"period"`
	ReturnData *bool               `json:"returnData"`
}

// CloudWatchStat is AWS's MetricStat.
type CloudWatchStat struct {
	Metric CloudWatchStatMetric `json:"metric"`
	Period *intstr.IntOrString  `json:"period"`
	Stat   string               `json:"stat"`
	Unit   string               `json:"unit"`
}

// CloudWatchStatMetric is AWS's Metric.
type CloudWatchStatMetric struct {
	Namespace  string                `json:"namespace"`
	MetricName string                `json:"metricName"`
	Dimensions []CloudWatchDimension `json:"dimensions"`
}

// CloudWatchDimension is AWS's Dimension.
type CloudWatchDimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Rules of AWS for GetMetricData.
const maxCloudWatchQueries = 500

var cloudWatchID = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,254}$`)

// Errors of a query.
var (
	errOneQuery = errors.New("a query wants either an expression or a metricStat")
	// errFieldTwice says that a query has one field under two spellings.
	errFieldTwice = errors.New("one field is there twice: leave one out")
	errPeriod     = errors.New("a period is 1, 5, 10, 20, 30 or a multiple of 60 seconds")
)

// CloudWatchQueries reads the queries of a metric with its arguments put in. An error
// names the query's place in the list and its field.
func CloudWatchQueries(m v1alpha1.CloudWatchMetric) ([]CloudWatchQuery, error) {
	queries := make([]CloudWatchQuery, len(m.MetricDataQueries))
	for i, raw := range m.MetricDataQueries {
		if err := checkFieldsOnce(raw.Raw); err != nil {
			return nil, fmt.Errorf("metricDataQueries[%d]: %w", i, err)
		}
		d := json.NewDecoder(bytes.NewReader(raw.Raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&queries[i]); err != nil {
			return nil, fmt.Errorf("metricDataQueries[%d]: %w", i, err)
		}
	}
	return queries, nil
}

// checkFieldsOnce refuses one field under two spellings, such as expression and
// Expression: which of them counts would depend on their order.
func checkFieldsOnce(raw []byte) error {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &fields) != nil {
		return nil // refused when it is read
	}
	names := slices.Sorted(maps.Keys(fields))
	for i, name := range names {
		for _, other := range names[i+1:] {
			if strings.EqualFold(name, other) {
				return fmt.Errorf("%s and %s: %w", name, other, errFieldTwice)
			}
		}
	}
	return nil
}

// Seconds of a period; nil for none.
func Seconds(period *intstr.IntOrString) (*int32, error) {
	if period == nil {
		return nil, nil
	}
	n, err := strconv.ParseInt(period.String(), 10, 32)
	if err != nil || n < 1 || n >= 60 && n%60 != 0 || n < 60 && n != 1 && n != 5 && n != 10 && n != 20 && n != 30 {
		return nil, errPeriod
	}
	seconds := int32(n)
	return &seconds, nil
}

func checkCloudWatch(m v1alpha1.CloudWatchMetric, path string, c completeness, ps *problems) {
	checkSpan(m.Interval, path+".interval", c, ps)
	path += ".metricDataQueries"
	if n := len(m.MetricDataQueries); n == 0 || n > maxCloudWatchQueries {
		ps.add(path, "there are %d queries: at least 1 is wanted, and at most %d", n, maxCloudWatchQueries)
	}
	queries, err := CloudWatchQueries(m)
	if err != nil {
		ps.add(path, "%v", err)
		return
	}
	seen := map[string]bool{}
	returned := false
	for i, q := range queries {
		field := fmt.Sprintf("%s[%d]", path, i)
		checkCloudWatchQuery(q, field, c, ps)
		if seen[q.ID] {
			ps.add(field+".id", "the id %q is there twice", q.ID)
		}
		seen[q.ID] = true
		returned = returned || q.ReturnData == nil || *q.ReturnData
	}
	if len(queries) > 0 && !returned {
		ps.add(path, "no query returns data: leave returnData: false out of one")
	}
}

func checkCloudWatchQuery(q CloudWatchQuery, path string, c completeness, ps *problems) {
	if !cloudWatchID.MatchString(q.ID) && !isOpen(q.ID, c) {
		ps.add(path+".id", "an id wants a small letter and then letters, digits and underscores")
	}
	checkPeriod(q.Period, path+".period", c, ps)
	if (strings.TrimSpace(q.Expression) == "") == (q.MetricStat == nil) {
		ps.add(path, "%v", errOneQuery)
	}
	s := q.MetricStat
	if s == nil {
		return
	}
	path += ".metricStat"
	checkPeriod(s.Period, path+".period", c, ps)
	if s.Period == nil {
		ps.add(path+".period", "a period in seconds is wanted")
	}
	for _, f := range []struct{ name, text string }{{"stat", s.Stat}, {"metric.metricName", s.Metric.MetricName}, {"metric.namespace", s.Metric.Namespace}} {
		if f.text == "" {
			ps.add(path+"."+f.name, "the %s is missing", f.name)
		}
	}
	for i, d := range s.Metric.Dimensions {
		if d.Name == "" || d.Value == "" {
			ps.add(fmt.Sprintf("%s.metric.dimensions[%d]", path, i), "a dimension wants a name and a value")
		}
	}
}

func checkPeriod(p *intstr.IntOrString, path string, c completeness, ps *problems) {
	if p != nil && p.Type == intstr.String && isOpen(p.StrVal, c) {
		return
	}
	if _, err := Seconds(p); err != nil {
		ps.add(path, "%v", err)
	}
}

// isOpen says that a text waits for an argument.
func isOpen(text string, c completeness) bool { return c == partial && placeholder.MatchString(text) }
