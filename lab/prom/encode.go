package prom

import (
	"errors"
	"net/http"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/jsonutil"
	"github.com/prometheus/prometheus/util/stats"
)

// The functions below write what Prometheus' web/api/v1 writes, with the same
// helpers for numbers. encoding/json would write other floats and escape labels
// differently.

var codec = jsoniter.ConfigCompatibleWithStandardLibrary

func writeError(w http.ResponseWriter, err error) {
	known := &apiError{internal, err}
	errors.As(err, &known)
	body, err := codec.Marshal(struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
	}{"error", known.kind.word, known.Error()})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, known.kind.status, body)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away is the only way in which this fails.
	_, _ = w.Write(body)
}

func writeResult(w http.ResponseWriter, result *promql.Result, query string, statistics stats.QueryStats) {
	stream := jsoniter.NewStream(codec, nil, 4096)
	stream.WriteObjectStart()
	field(stream, "status", "success")
	stream.WriteMore()
	stream.WriteObjectField("data")
	stream.WriteObjectStart()
	field(stream, "resultType", string(result.Value.Type()))
	stream.WriteMore()
	stream.WriteObjectField("result")
	writeValue(stream, result.Value)
	if statistics != nil {
		stream.WriteMore()
		field(stream, "stats", statistics)
	}
	stream.WriteObjectEnd()
	warnings, infos := result.Warnings.AsStrings(query, 10, 10)
	annotation(stream, "warnings", warnings)
	annotation(stream, "infos", infos)
	stream.WriteObjectEnd()
	if stream.Error != nil {
		writeError(w, stream.Error)
		return
	}
	writeBody(w, http.StatusOK, stream.Buffer())
}

func annotation(stream *jsoniter.Stream, name string, list []string) {
	if len(list) > 0 {
		stream.WriteMore()
		field(stream, name, list)
	}
}

func field(stream *jsoniter.Stream, name string, value any) {
	stream.WriteObjectField(name)
	stream.WriteVal(value)
}

func writeValue(stream *jsoniter.Stream, value any) {
	switch v := value.(type) {
	case promql.Vector:
		stream.WriteArrayStart()
		for i, sample := range v {
			if i > 0 {
				stream.WriteMore()
			}
			writeSample(stream, sample)
		}
		stream.WriteArrayEnd()
	case promql.Matrix:
		stream.WriteArrayStart()
		for i, series := range v {
			if i > 0 {
				stream.WriteMore()
			}
			writeSeries(stream, series)
		}
		stream.WriteArrayEnd()
	default: // Scalar and String know their JSON
		stream.WriteVal(v)
	}
}

func writeSample(stream *jsoniter.Stream, s promql.Sample) {
	stream.WriteObjectStart()
	stream.WriteObjectField("metric")
	writeLabels(stream, s.Metric)
	stream.WriteMore()
	if s.H != nil {
		stream.WriteObjectField("histogram")
		writeHPoint(stream, promql.HPoint{T: s.T, H: s.H})
	} else {
		stream.WriteObjectField("value")
		writeFPoint(stream, promql.FPoint{T: s.T, F: s.F})
	}
	stream.WriteObjectEnd()
}

func writeSeries(stream *jsoniter.Stream, s promql.Series) {
	stream.WriteObjectStart()
	stream.WriteObjectField("metric")
	writeLabels(stream, s.Metric)
	writePoints(stream, "values", s.Floats, writeFPoint)
	writePoints(stream, "histograms", s.Histograms, writeHPoint)
	stream.WriteObjectEnd()
}

func writePoints[P any](stream *jsoniter.Stream, name string, points []P, write func(*jsoniter.Stream, P)) {
	if len(points) == 0 {
		return
	}
	stream.WriteMore()
	stream.WriteObjectField(name)
	stream.WriteArrayStart()
	for i, p := range points {
		if i > 0 {
			stream.WriteMore()
		}
		write(stream, p)
	}
	stream.WriteArrayEnd()
}

func writeFPoint(stream *jsoniter.Stream, p promql.FPoint) {
	stream.WriteArrayStart()
	jsonutil.MarshalTimestamp(p.T, stream)
	stream.WriteMore()
	jsonutil.MarshalFloat(p.F, stream)
	stream.WriteArrayEnd()
}

func writeHPoint(stream *jsoniter.Stream, p promql.HPoint) {
	stream.WriteArrayStart()
	jsonutil.MarshalTimestamp(p.T, stream)
	stream.WriteMore()
	jsonutil.MarshalHistogram(p.H, stream)
	stream.WriteArrayEnd()
}

func writeLabels(stream *jsoniter.Stream, l labels.Labels) {
	stream.WriteObjectStart()
	first := true
	l.Range(func(label labels.Label) {
		if !first {
			stream.WriteMore()
		}
		first = false
		stream.WriteString(label.Name)
		stream.WriteRaw(":")
		stream.WriteString(label.Value)
	})
	stream.WriteObjectEnd()
}
