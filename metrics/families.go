package metrics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Family is all samples of one metric, for programs that export them. [Handler] writes them as a page.
type Family struct {
	Name    string
	Help    string   // one line
	Type    string   // "gauge", "counter", or "histogram"
	Labels  []string // the names of the labels of each sample
	Samples []Sample // with different values of their labels
}

// Sample is one value of a [Family].
type Sample struct {
	Values    []string // of the labels, as valid UTF-8
	Value     float64  // of a gauge or a counter
	Histogram *Histogram
}

// Histogram is a distribution with the number of its values up to each bound.
type Histogram struct {
	Count  int64
	Sum    float64
	Bounds []float64 // in seconds, ascending
	Counts []int64   // of the values that are at most the bound of the same index
}

// Families reads the state of a queue, the counters of a tally, which may be nil, and the families of producers.
// It returns the metrics that [Handler] lists, in an order that does not change. It returns the error of the
// queue or of a producer.
func Families(ctx context.Context, q Source, t *Tally, more ...Producer) ([]Family, error) {
	stats, err := q.Stats(ctx)
	if err != nil {
		return nil, err
	}
	families := state(stats, time.Now())
	if t != nil {
		families = append(families, t.families()...)
	}
	produced, err := produce(ctx, more)
	return append(families, produced...), err
}

// state returns the figures of the queues and of their file.
func state(stats pawl.Stats, now time.Time) []Family {
	jobs := Family{"pawl_jobs", "Jobs by queue and state; a blocked job is not counted as ready.", "gauge", []string{"queue", "state"}, nil}
	oldest := Family{"pawl_oldest_ready_seconds", "How long the oldest job that could run has been ready.", "gauge", []string{"queue"}, nil}
	paused := Family{"pawl_queue_paused", "1 if the queue is paused.", "gauge", []string{"queue"}, nil}
	resting := Family{"pawl_queue_rest_seconds", "How long the queue still rests after a throttle; 0 if it does not.", "gauge", []string{"queue"}, nil}
	held := Family{"pawl_held_keys", "Keys that a dead job holds, so that no other job of the key runs.", "gauge", []string{"queue"}, nil}
	for _, q := range boundedQueues(stats.Queues) {
		for _, s := range [...]struct {
			name string
			jobs int
		}{
			{"ready", max(0, q.Ready-q.Blocked)}, {"blocked", q.Blocked}, {"delayed", q.Delayed},
			{"leased", q.Leased}, {"dead", q.Dead}, {"completed", q.Completed},
		} {
			jobs.Add(float64(s.jobs), q.Name, s.name)
		}
		age, is, left := 0.0, 0.0, 0.0
		if !q.Oldest.IsZero() {
			age = max(0, now.Sub(q.Oldest).Seconds())
		}
		if q.Paused {
			is = 1
		}
		if !q.Rests.IsZero() {
			left = max(0, q.Rests.Sub(now).Seconds())
		}
		oldest.Add(age, q.Name)
		paused.Add(is, q.Name)
		resting.Add(left, q.Name)
		held.Add(float64(q.Held), q.Name)
	}
	families := []Family{jobs, oldest, paused, resting, held}
	file := func(name, help string, bytes int64) {
		families = append(families, Family{name, help, "gauge", nil, []Sample{{Value: float64(bytes)}}})
	}
	if stats.Size > 0 {
		file("pawl_file_bytes", "Size of the file.", stats.Size)
	}
	if stats.Size > 0 && stats.Free >= 0 {
		file("pawl_file_free_bytes", "Bytes of the file that are free for reuse.", stats.Free)
	}
	if stats.Max > 0 {
		file("pawl_file_max_bytes", "Bytes of the file that may be in use before enqueues are refused.", stats.Max)
	}
	return families
}

// boundedQueues returns one entry for each value of the label queue: at most MaxLabels, and one
// more, [Other], for the rest and for a queue of that name.
func boundedQueues(queues []pawl.QueueStats) []pawl.QueueStats {
	var all []pawl.QueueStats
	at := make(map[string]int) // of all
	for _, q := range queues {
		q.Name = label(q.Name)
		i, known := at[q.Name]
		if !known && len(all) >= MaxLabels {
			q.Name = Other
			i, known = at[q.Name]
		}
		if known {
			merge(&all[i], q)
			continue
		}
		at[q.Name] = len(all)
		all = append(all, q)
	}
	return all
}

// merge adds a queue to one of the same label.
func merge(all *pawl.QueueStats, q pawl.QueueStats) {
	all.Ready += q.Ready
	all.Blocked += q.Blocked
	all.Delayed += q.Delayed
	all.Leased += q.Leased
	all.Dead += q.Dead
	all.Completed += q.Completed
	all.Held += q.Held
	all.Paused = all.Paused || q.Paused
	if all.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(all.Oldest) {
		all.Oldest = q.Oldest
	}
}

// label returns a name as the value of a label, in valid UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// families returns the counters and the distributions.
func (t *Tally) families() (families []Family) {
	t.mu.Lock()
	counts := maps.Clone(t.counts)
	sums := make(map[Figure]histogram, len(t.sums))
	for f, h := range t.sums {
		sums[f] = *h
	}
	t.mu.Unlock()

	of := func(name, kind, help string) *Family { // the family to add to
		if n := len(families); n == 0 || families[n-1].Name != name {
			families = append(families, Family{name, help, kind, []string{"queue", "kind"}, nil})
		}
		return &families[len(families)-1]
	}
	for _, f := range sorted(counts) {
		name := "pawl_" + strings.TrimSuffix(f.Name, "_total") + "_total"
		of(name, "counter", "Counter "+f.Name+" of package metrics.").Add(float64(counts[f]), f.Queue, f.Kind)
	}
	for _, f := range sorted(sums) {
		h := sums[f]
		family := of("pawl_"+f.Name, "histogram", "Distribution "+f.Name+" of package metrics.")
		family.Samples = append(family.Samples, Sample{Values: []string{f.Queue, f.Kind}, Histogram: h.cumulative()})
	}
	return families
}

// sorted returns the keys of a map, in the order of their names and labels.
func sorted[T any](figures map[Figure]T) []Figure {
	return slices.SortedFunc(maps.Keys(figures), func(a, b Figure) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Queue, b.Queue), strings.Compare(a.Kind, b.Kind))
	})
}
