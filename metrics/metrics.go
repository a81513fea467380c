// Package metrics has the counters of queues: their names, a [Collector] that receives them, a
// [Tally] that keeps them in memory, a [Handler] that serves them to Prometheus, and the handlers
// [Health] and [Ready] for a supervisor. docs/contract.md says which event counts where.
package metrics

import (
	"maps"
	"sync"
)

// Collector receives counters. Any goroutine may call its methods. They must neither block nor
// call a queue.
type Collector interface {
	// Increment adds 1 to a counter.
	Increment(name string, l Labels)

	// Observe adds a value to a distribution. Names that end in _seconds are seconds.
	Observe(name string, l Labels, value float64)
}

// Labels say what a figure is about. There are no other labels. The program bounds their number
// by what it defines, and a [Tally] by [MaxLabels].
type Labels struct {
	Queue string
	Kind  string
}

// Names of the counters, and of the distributions, which end in _seconds.
const (
	JobsFetched           = "jobs_fetched"
	JobsSucceeded         = "jobs_succeeded"
	JobsFailed            = "jobs_failed"   // failed attempts
	JobsRequeued          = "jobs_requeued" // failed attempts with retries left; a deadline or a cancel may come first
	RetriesTotal          = "retries_total" // the same as JobsRequeued
	RetryExhaustedTotal   = "retry_exhausted_total"
	JobsFailedPermanently = "jobs_failed_permanently" // jobs that died, whatever the reason
	JobsTimedOut          = "jobs_timed_out"
	JobsPoisoned          = "jobs_poisoned"
	JobsExpired           = "jobs_expired" // their deadline passed
	JobsCancelled         = "jobs_cancelled"
	JobsRejectedSignature = "jobs_rejected_signature"
	JobsRejectedPayload   = "jobs_rejected_payload" // their arguments do not fit the type of their worker
	JobsSkippedIdempotent = "jobs_skipped_idempotent"
	JobsReleased          = "jobs_released"
	JobsSnoozed           = "jobs_snoozed"
	JobsReaped            = "jobs_reaped"
	JobsRecovered         = "jobs_recovered"
	JobsDLQFailed         = "jobs_dlq_failed" // dead jobs that could not be forwarded

	JobsAgeSeconds      = "jobs_age_seconds"      // from the time when a job was due until its start
	JobsExecSeconds     = "jobs_exec_seconds"     // of attempts that succeeded
	RetryDelaySeconds   = "retry_delay_seconds"   // from a failed attempt until its retry is due
	RetryLatencySeconds = "retry_latency_seconds" // from a failed attempt until the start of its retry
)

// Discard is the collector that drops everything.
type Discard struct{}

// Increment implements [Collector].
func (Discard) Increment(string, Labels) {}

// Observe implements [Collector].
func (Discard) Observe(string, Labels, float64) {}

// MaxLabels is how many different [Labels] a [Tally] counts separately, and how many queues a
// [Handler] does. They count the rest together, as [Other].
const MaxLabels = 1000

// Other is the queue and the kind of all that exceeds [MaxLabels].
const Other = "other"

// Tally is a collector that keeps its figures in memory. The zero value is empty and ready for
// use.
type Tally struct {
	mu     sync.Mutex
	labels map[Labels]bool
	counts map[Figure]int64
	sums   map[Figure]*histogram
}

// Figure names one counter or distribution of a [Tally].
type Figure struct {
	Name string
	Labels
}

// Distribution is what a [Tally] keeps of observed values.
type Distribution struct {
	Count         int64
	Sum, Min, Max float64
}

// Increment implements [Collector].
func (t *Tally) Increment(name string, l Labels) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[Figure]int64)
	}
	t.counts[Figure{name, t.bounded(l)}]++
}

// Observe implements [Collector].
func (t *Tally) Observe(name string, l Labels, value float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sums == nil {
		t.sums = make(map[Figure]*histogram)
	}
	f := Figure{name, t.bounded(l)}
	if t.sums[f] == nil {
		t.sums[f] = new(histogram)
	}
	t.sums[f].add(value)
}

// bounded returns the labels to count under, as valid UTF-8.
func (t *Tally) bounded(l Labels) Labels {
	l = Labels{Queue: label(l.Queue), Kind: label(l.Kind)}
	if t.labels == nil {
		t.labels = make(map[Labels]bool)
	}
	if !t.labels[l] && len(t.labels) >= MaxLabels {
		return Labels{Queue: Other, Kind: Other}
	}
	t.labels[l] = true
	return l
}

// Snapshot is the figures of a [Tally] at one moment.
type Snapshot struct {
	Counts        map[Figure]int64
	Distributions map[Figure]Distribution
}

// Snapshot returns a copy of the figures.
func (t *Tally) Snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Snapshot{Counts: maps.Clone(t.counts), Distributions: make(map[Figure]Distribution, len(t.sums))}
	for f, h := range t.sums {
		s.Distributions[f] = h.Distribution
	}
	return s
}

// Total returns the sum of a counter over all queues and kinds, or 0 for a counter that was never
// counted.
func (s Snapshot) Total(name string) (total int64) {
	for f, n := range s.Counts {
		if f.Name == name {
			total += n
		}
	}
	return total
}

// Distribution merges a distribution over all queues and kinds.
func (s Snapshot) Distribution(name string) (all Distribution) {
	for f, d := range s.Distributions {
		if f.Name == name {
			all.merge(d)
		}
	}
	return all
}

// merge adds the values of another distribution, which is not empty.
func (d *Distribution) merge(other Distribution) {
	if d.Count == 0 {
		*d = other
		return
	}
	d.Count += other.Count
	d.Sum += other.Sum
	d.Min, d.Max = min(d.Min, other.Min), max(d.Max, other.Max)
}
