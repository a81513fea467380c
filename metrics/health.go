package metrics

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Health answers a supervisor that asks whether to restart the process. The answer is 200 while the
// queue is open, and 503 with the reason once it was closed or refuses all work (pawl.ErrPoisoned).
// For a queue without a method Done, it is 503 if the queue cannot be read. A full disk, a paused
// queue, dead jobs, and a server that cannot be reached count as healthy, because a restart does not
// help.
func Health(q Source) http.Handler {
	return answering(func(w http.ResponseWriter, r *http.Request) {
		answer(w, "healthy", alive(r.Context(), q))
	})
}

// Runner is a worker, such as *worker.Worker.
type Runner interface {
	Running() bool
}

// Ready answers a load balancer that asks whether to send requests that enqueue jobs. The answer is
// 200, or 503 with the reason, which is the first of these:
//
//   - The queue was closed or refuses all work; see [Health].
//   - One of the workers is not fetching: it was not started, or a stop has begun.
//   - The last commit of the queue failed within the last 10 s, because the disk is full, for example.
//     Later the answer is 200 again, so that requests try whether commits succeed. Package bolt knows its
//     last commit; other queues do not tell.
//   - The queue cannot be read.
func Ready(q Source, workers ...Runner) http.Handler {
	return answering(func(w http.ResponseWriter, r *http.Request) {
		answer(w, "ready", ready(r.Context(), q, workers))
	})
}

// failedCommit is how long a failed commit makes a queue unready.
const failedCommit = 10 * time.Second

func ready(ctx context.Context, q Source, workers []Runner) error {
	if err := alive(ctx, q); err != nil {
		return err
	}
	for i, worker := range workers {
		if !worker.Running() {
			return fmt.Errorf("worker %d of %d is not running", i+1, len(workers))
		}
	}
	if committer, ok := q.(interface{ LastCommit() (time.Time, error) }); ok {
		if at, err := committer.LastCommit(); err != nil && time.Since(at) < failedCommit {
			return fmt.Errorf("the last commit failed: %w", err)
		}
	}
	_, err := q.Stats(ctx)
	return err
}

func alive(ctx context.Context, q Source) error {
	stopper, ok := q.(interface{ Done() <-chan struct{} })
	if !ok {
		_, err := q.Stats(ctx)
		return err
	}
	select {
	case <-stopper.Done():
	default:
		return nil
	}
	if failed, ok := q.(interface{ Err() error }); ok {
		if err := failed.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the queue was closed")
}

func answer(w http.ResponseWriter, word string, err error) {
	if err != nil {
		http.Error(w, "not "+word+": "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, word) // an error means that the client has gone
}
