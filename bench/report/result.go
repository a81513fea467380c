// Package report holds the results of a comparison and writes them as Markdown and JSON.
package report

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"
)

// Result is one figure of one system: the median of its rounds with its bounds.
type Result struct {
	System     string  `json:"system"`
	Case       string  `json:"case"` // followed by a slash and the metric, if there are several
	Value      float64 `json:"value"`
	Unit       string  `json:"unit"`
	Durability string  `json:"durability"`
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Rounds     int     `json:"rounds"`

	values []float64 // by round
}

// Results are the figures of a run in the order of their first rounds.
type Results []*Result

// Add adds the figure of one round.
func (all *Results) Add(system, name, unit, durability string, value float64) {
	r := all.Find(system, name)
	if r == nil {
		r = &Result{System: system, Case: name, Unit: unit, Durability: durability}
		*all = append(*all, r)
	}
	r.Set(append(r.values, value)...)
}

// Set sets the figures of all rounds.
func (r *Result) Set(values ...float64) {
	r.values, r.Rounds = values, len(values)
	r.Value, r.Min, r.Max = Median(values), slices.Min(values), slices.Max(values)
}

// Find returns a result, or nil.
func (all Results) Find(system, name string) *Result {
	i := slices.IndexFunc(all, func(r *Result) bool { return r.System == system && r.Case == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// JSON writes one object per line.
func (all Results) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range all {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// Compare compares two results round by round and returns the median, so that a slow phase of the
// machine counts less. If they have different rounds, it compares their medians.
func Compare(a, b *Result, how func(a, b float64) float64) float64 {
	if len(a.values) != len(b.values) || len(a.values) == 0 {
		return how(a.Value, b.Value)
	}
	all := make([]float64, len(a.values))
	for i := range all {
		all[i] = how(a.values[i], b.values[i])
	}
	return Median(all)
}

// Ratio compares two results by division.
func Ratio(a, b *Result) float64 {
	return Compare(a, b, func(a, b float64) float64 { return a / b })
}

// Median returns the median of values.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile returns the smallest of the sorted values that percent of them do not exceed.
func Percentile(sorted []time.Duration, percent float64) time.Duration {
	i := int(math.Ceil(float64(len(sorted))*percent/100)) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Milli returns a duration in milliseconds.
func Milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// MiB returns a number of bytes in mebibytes.
func MiB(n int64) float64 { return float64(n) / (1 << 20) }
