package metrics

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Source is the queue that a [Handler] describes. The queues of packages bolt, memory, sqlite,
// postgres, and redis are sources.
type Source interface {
	Stats(ctx context.Context) (pawl.Stats, error)
}

// Handler serves the state of a queue and the counters of a tally in the text format of Prometheus,
// version 0.0.4. Give the same tally to the queue as its collector. Without a tally it serves the
// state alone.
//
// State, read from the queue at each request:
//
//   - pawl_jobs{queue, state}: jobs that are ready, blocked, delayed, leased, dead, or completed.
//     A blocked job is not counted as ready.
//   - pawl_oldest_ready_seconds{queue}: how long the oldest job that could run has been ready.
//   - pawl_queue_paused{queue}: 1 if the queue is paused.
//   - pawl_file_bytes, pawl_file_free_bytes: the size of the file, and how much of it is free.
//
// Counters are named pawl_ and their name, and end in _total. Distributions are histograms with
// buckets from a millisecond to an hour. Both have the labels queue and kind. They start at zero
// with the process.
//
// If the queue cannot be read, the answer is 503 with the error as text.
func Handler(q Source, t *Tally) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
			return
		}
		stats, err := q.Stats(r.Context())
		if err != nil {
			http.Error(w, "read the queue: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		var p page
		p.state(stats, time.Now())
		if t != nil {
			p.tally(t)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(p.text) // an error means that the client has gone
	})
}

// state writes the figures of the queues and of their file.
func (p *page) state(stats pawl.Stats, now time.Time) {
	queues := boundedQueues(stats.Queues)
	p.family("pawl_jobs", "gauge", "Jobs by queue and state; a blocked job is not counted as ready.")
	for _, q := range queues {
		for _, state := range [...]struct {
			name string
			jobs int
		}{
			{"ready", max(0, q.Ready-q.Blocked)}, {"blocked", q.Blocked}, {"delayed", q.Delayed},
			{"leased", q.Leased}, {"dead", q.Dead}, {"completed", q.Completed},
		} {
			p.sample("pawl_jobs", float64(state.jobs), "queue", q.Name, "state", state.name)
		}
	}
	p.family("pawl_oldest_ready_seconds", "gauge", "How long the oldest job that could run has been ready.")
	for _, q := range queues {
		age := 0.0
		if !q.Oldest.IsZero() {
			age = max(0, now.Sub(q.Oldest).Seconds())
		}
		p.sample("pawl_oldest_ready_seconds", age, "queue", q.Name)
	}
	p.family("pawl_queue_paused", "gauge", "1 if the queue is paused.")
	for _, q := range queues {
		paused := 0.0
		if q.Paused {
			paused = 1
		}
		p.sample("pawl_queue_paused", paused, "queue", q.Name)
	}
	if stats.Size > 0 {
		p.family("pawl_file_bytes", "gauge", "Size of the file.")
		p.sample("pawl_file_bytes", float64(stats.Size))
	}
	if stats.Size > 0 && stats.Free >= 0 {
		p.family("pawl_file_free_bytes", "gauge", "Bytes of the file that are free for reuse.")
		p.sample("pawl_file_free_bytes", float64(stats.Free))
	}
}

// boundedQueues returns at most MaxLabels queues and one more, [Other], for the rest.
func boundedQueues(queues []pawl.QueueStats) []pawl.QueueStats {
	if len(queues) <= MaxLabels {
		return queues
	}
	other := pawl.QueueStats{Name: Other}
	for _, q := range queues[MaxLabels:] {
		other.Ready += q.Ready
		other.Blocked += q.Blocked
		other.Delayed += q.Delayed
		other.Leased += q.Leased
		other.Dead += q.Dead
		other.Completed += q.Completed
		if other.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(other.Oldest) {
			other.Oldest = q.Oldest
		}
	}
	return append(slices.Clone(queues[:MaxLabels]), other)
}

// tally writes the counters and the distributions.
func (p *page) tally(t *Tally) {
	t.mu.Lock()
	counts := maps.Clone(t.counts)
	sums := make(map[Figure]histogram, len(t.sums))
	for f, h := range t.sums {
		sums[f] = *h
	}
	t.mu.Unlock()

	previous := ""
	for _, f := range sorted(counts) {
		name := "pawl_" + strings.TrimSuffix(f.Name, "_total") + "_total"
		if f.Name != previous {
			p.family(name, "counter", "Counter "+f.Name+" of package metrics.")
			previous = f.Name
		}
		p.sample(name, float64(counts[f]), "queue", f.Queue, "kind", f.Kind)
	}
	for _, f := range sorted(sums) {
		name := "pawl_" + f.Name
		if f.Name != previous {
			p.family(name, "histogram", "Distribution "+f.Name+" of package metrics.")
			previous = f.Name
		}
		p.histogram(name, sums[f], "queue", f.Queue, "kind", f.Kind)
	}
}

// sorted returns the keys of a map, in the order of their names and labels.
func sorted[T any](figures map[Figure]T) []Figure {
	return slices.SortedFunc(maps.Keys(figures), func(a, b Figure) int {
		for _, order := range [...]int{strings.Compare(a.Name, b.Name), strings.Compare(a.Queue, b.Queue), strings.Compare(a.Kind, b.Kind)} {
			if order != 0 {
				return order
			}
		}
		return 0
	})
}
