package metrics

import "sort"

// bounds are the upper bounds of the buckets of a histogram, in seconds: from a millisecond to an
// hour.
var bounds = [...]float64{
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
	1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 3600,
}

// histogram is a distribution with the number of its values in each bucket. A value that exceeds
// all bounds is in none.
type histogram struct {
	Distribution
	buckets [len(bounds)]int64
}

func (h *histogram) add(value float64) {
	h.merge(Distribution{1, value, value, value})
	if i := sort.SearchFloat64s(bounds[:], value); i < len(bounds) {
		h.buckets[i]++
	}
}

func (h *histogram) cumulative() *Histogram {
	all := &Histogram{Count: h.Count, Sum: h.Sum, Bounds: bounds[:], Counts: make([]int64, len(bounds))}
	below := int64(0)
	for i, n := range h.buckets {
		below += n
		all.Counts[i] = below
	}
	return all
}
