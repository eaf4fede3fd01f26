package wavefront

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/analysis"
)

// maxMetadata is the most bytes of the times, and of the drifts, of all the series.
const maxMetadata = 512

// series of datapoints: a time in seconds, and a number or null.
type series struct {
	Label string            `json:"label"`
	Host  string            `json:"host"`
	Tags  map[string]string `json:"tags"`
	Data  [][]*float64      `json:"data"`
}

// key orders series.
func (s series) key() string {
	tags, err := json.Marshal(s.Tags) // in the order of the keys
	if err != nil {
		return s.Label // a map of texts can be encoded
	}
	return s.Label + "\x00" + s.Host + "\x00" + string(tags)
}

// point is the datapoint that counts; value is nil when there is none.
type point struct{ value, time, drift any }

func read(body []byte, at time.Time) (analysis.Sample, error) {
	var answer struct {
		Query      *string   `json:"query"`
		TimeSeries *[]series `json:"timeseries"`
		Warnings   string    `json:"warnings"`
		ErrorType  string    `json:"errorType"`
		Error      string    `json:"errorMessage"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return analysis.Sample{}, fmt.Errorf("the answer is not Wavefront's: %w", err)
	}
	if answer.Error != "" || answer.ErrorType != "" {
		return analysis.Sample{}, fmt.Errorf("the query failed: %s: %s", answer.ErrorType, answer.Error)
	}
	if answer.Query == nil && answer.TimeSeries == nil {
		return analysis.Sample{}, errors.New("the answer is not Wavefront's: it has neither a query nor timeseries")
	}
	var all []series
	if answer.TimeSeries != nil {
		all = *answer.TimeSeries
	}
	slices.SortStableFunc(all, func(a, b series) int { return cmp.Compare(a.key(), b.key()) })
	points := make([]point, len(all))
	for i, s := range all {
		var err error
		if points[i], err = s.nearest(at); err != nil {
			return analysis.Sample{}, err
		}
	}
	return sampleOf(points, answer.Warnings), nil
}

// nearest datapoint to a time; of two that are as near, the first.
func (s series) nearest(at time.Time) (point, error) {
	found, drift := point{}, math.Inf(1)
	for _, p := range s.Data {
		if len(p) != 2 || p[0] == nil {
			return point{}, errors.New("the answer is not Wavefront's: a datapoint is not a time and a value")
		}
		d := *p[0] - float64(at.Unix())
		if p[1] != nil && math.Abs(d) < math.Abs(drift) {
			found, drift = point{value: *p[1], time: *p[0], drift: d}, d
		}
	}
	return found, nil
}

func sampleOf(points []point, warnings string) analysis.Sample {
	pick := func(part func(point) any) any {
		switch len(points) {
		case 0:
			return nil
		case 1:
			return part(points[0])
		}
		list := make([]any, len(points))
		for i, p := range points {
			list[i] = part(p)
		}
		return list
	}
	metadata := map[string]string{}
	if len(points) > 0 {
		metadata[TimesMetadata] = analysis.Truncate(analysis.Text(pick(func(p point) any { return p.time })), maxMetadata)
		metadata[DriftMetadata] = analysis.Truncate(analysis.Text(pick(func(p point) any { return p.drift })), maxMetadata)
	}
	if warnings != "" {
		metadata[WarningsMetadata] = warnings
	}
	return analysis.Sample{Value: pick(func(p point) any { return p.value }), Metadata: metadata}
}
