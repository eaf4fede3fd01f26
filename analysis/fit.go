package analysis

import (
	"maps"
	"slices"
	"strconv"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// maxStatus bounds the bytes of all that is kept of the metrics, well under what an
	// object may have, whatever the retention says.
	maxStatus = 512 << 10
	// maxMetadata is the most bytes of a value of metadata that are kept.
	maxMetadata = 1 << 10
	// maxKey is the most bytes that a key of metadata may have: it is left out beyond.
	maxKey = 256
	// maxKeys is the most that are kept of the metadata of a measurement or a metric.
	maxKeys = 32
	// maxAllMetadata is the most bytes of all of them together.
	maxAllMetadata = 8 << 10
	// leftOut is the key that says how many are not kept.
	leftOut = "pushback.dev/left-out"
)

// brief is what is kept of metadata, which a server may have made as long as it liked:
// values are cut, and of the keys, in their order, those are left out that are too long
// or too many. Nothing is changed in metadata of the usual size.
func brief(metadata map[string]string) map[string]string {
	if metadata == nil {
		return nil
	}
	out, total := make(map[string]string, min(len(metadata), maxKeys+1)), 0
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := Truncate(metadata[key], maxMetadata)
		if len(out) == maxKeys || len(key) > maxKey || total+len(key)+len(value) > maxAllMetadata {
			continue
		}
		out[key] = value
		total += len(key) + len(value)
	}
	if n := len(metadata) - len(out); n > 0 {
		out[leftOut] = strconv.Itoa(n)
	}
	return out
}

// fit drops the oldest measurements of the longest lists until all of it fits, and then
// what is kept with metrics and with ended measurements. The last measurement of each
// metric always stays, and the handle of one under way is whole.
func fit(results []v1alpha1.MetricResult) []v1alpha1.MetricResult {
	sizes := make([]int, len(results))
	total := 0
	for i, r := range results {
		sizes[i] = sizeOf(r)
		total += sizes[i]
	}
	for _, cut := range []func(*v1alpha1.MetricResult) bool{dropOldest, dropAbout, dropMetadata} {
		for total > maxStatus {
			i := largest(results, sizes, cut)
			if i < 0 {
				break
			}
			total -= sizes[i]
			sizes[i] = sizeOf(results[i])
			total += sizes[i]
		}
	}
	return results
}

// largest cuts the largest result of which something can be cut, and gives its index; -1
// when there is none.
func largest(results []v1alpha1.MetricResult, sizes []int, cut func(*v1alpha1.MetricResult) bool) int {
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[b] - sizes[a] })
	for _, i := range order {
		if cut(&results[i]) {
			return i
		}
	}
	return -1
}

// dropOldest is false when there is one measurement left.
func dropOldest(r *v1alpha1.MetricResult) (dropped bool) {
	if len(r.Measurements) < 2 {
		return false
	}
	r.Measurements = r.Measurements[1:]
	return true
}

func dropAbout(r *v1alpha1.MetricResult) (dropped bool) {
	dropped = len(r.Metadata) > 0
	r.Metadata = nil
	return dropped
}

func dropMetadata(r *v1alpha1.MetricResult) (dropped bool) {
	last := len(r.Measurements) - 1
	if last < 0 || len(r.Measurements[last].Metadata) == 0 || !r.Measurements[last].Phase.Completed() {
		return false
	}
	r.Measurements[last].Metadata = nil
	return true
}

// sizeOf is about what a result takes when stored.
func sizeOf(r v1alpha1.MetricResult) int {
	n := len(r.Name) + len(r.Message) + bytesOf(r.Metadata)
	for _, m := range r.Measurements {
		n += size(m)
	}
	return n
}

// size is about what a measurement takes when stored.
func size(m v1alpha1.Measurement) int {
	const fixed = 160
	return fixed + len(m.Message) + len(m.Value) + bytesOf(m.Metadata)
}

func bytesOf(metadata map[string]string) int {
	n := 0
	for k, v := range metadata {
		n += len(k) + len(v)
	}
	return n
}
