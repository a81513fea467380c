package metrics

import (
	"context"
	"net/http"

	"github.com/gopawl/pawl"
)

// Source is the queue that a [Handler] describes. The queues of packages bolt, memory, sqlite,
// postgres, and redis are sources.
type Source interface {
	Stats(ctx context.Context) (pawl.Stats, error)
}

// Handler serves the state of a queue and the counters of a tally in the text format of Prometheus,
// version 0.0.4. Give the same tally to the queue as its collector. If t is nil, it serves only the
// state.
//
// State, read from the queue at each request:
//
//   - pawl_jobs{queue, state}: jobs that are ready, blocked, delayed, leased, dead, or completed.
//     A blocked job is not counted as ready.
//   - pawl_oldest_ready_seconds{queue}: how long the oldest job that could run has been ready.
//   - pawl_queue_paused{queue}: 1 if the queue is paused.
//   - pawl_queue_rest_seconds{queue}: how long the queue still rests, see pawl.Throttle.
//   - pawl_held_keys{queue}: keys that a dead job holds, see pawl.OrderHold.
//   - pawl_file_bytes, pawl_file_free_bytes, pawl_file_max_bytes: the size of the file, how much of it is
//     free, and at how many used bytes new jobs are refused, if there is such a bound.
//
// More are the producers of other figures: the workers of the process, workflow.Read(q) for the runs of
// workflows, and schedule.Read(q) for schedules. Their methods Families list what they have.
//
// Counters are named pawl_ and their name, and end in _total. Distributions are histograms with
// buckets from a millisecond to an hour. Both have the labels queue and kind. They start at zero
// with the process.
//
// If the queue cannot be read, the answer is 503 with the error as text.
func Handler(q Source, t *Tally, more ...Producer) http.Handler {
	return answering(func(w http.ResponseWriter, r *http.Request) {
		families, err := Families(r.Context(), q, t, more...)
		if err != nil {
			http.Error(w, "read the queue: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		var p page
		for i := range families {
			p.write(&families[i])
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(p.text) // an error means that the client has gone
	})
}

// answering serves GET and HEAD, and forbids caching.
func answering(get http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		get(w, r)
	})
}
