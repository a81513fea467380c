package guide

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/worker"
)

// watched opens a queue that counts, that reports dead jobs, and that serves its metrics.
func watched(path string, mux *http.ServeMux) (*bolt.Queue, error) {
	var tally metrics.Tally // or your own Collector
	q, err := bolt.Open(path, &bolt.Options{
		Collector: &tally,
		OnEvent: func(e pawl.Event) {
			if e.Type == pawl.EventDied {
				alert(e.Job, e.Cause)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("GET /metrics", metrics.Handler(q, &tally))
	return q, nil
}

// supervised lets a supervisor ask for the state of the process.
func supervised(mux *http.ServeMux, q *bolt.Queue, w *worker.Worker) {
	mux.Handle("GET /healthz", metrics.Health(q))  // 503: restart the process
	mux.Handle("GET /readyz", metrics.Ready(q, w)) // 503: send requests elsewhere
}

// timed logs how long each handler runs.
func timed(next worker.HandlerFunc) worker.HandlerFunc {
	return func(ctx context.Context, lease *pawl.Lease) error {
		begin := time.Now()
		err := next(ctx, lease)
		log.Print(lease.Kind, " took ", time.Since(begin))
		return err
	}
}

// newTimedWorker has middleware.
func newTimedWorker(q pawl.Queue) *worker.Worker {
	return worker.New(q, &worker.Options{Middleware: []worker.Middleware{timed}})
}

// retryWelcomes retries dead jobs.
func retryWelcomes(ctx context.Context, q *bolt.Queue) error {
	for job, err := range dlq.List(ctx, q, pawl.Filter{Kind: "mail.welcome"}) {
		if err != nil {
			log.Print(err) // a damaged job; the list continues
			continue
		}
		fmt.Println(job.ID, job.Death.Reason, job.Attempts, job.LastError())
	}
	n, err := dlq.RetryAll(ctx, q, nil, pawl.Filter{Kind: "mail.welcome"})
	if err != nil {
		return err
	}
	log.Print("retried ", n)
	return nil
}

// mount serves operators over the network.
func mount(mux *http.ServeMux, q *bolt.Queue) error {
	handler, err := admin.Handler(admin.Of(q), &admin.HandlerOptions{
		Token: os.Getenv("JOBCTL_TOKEN"), // an empty token is an error
		Hosts: []string{"jobs.example.com"},
	})
	if err != nil {
		return err
	}
	mux.Handle("/jobs/", http.StripPrefix("/jobs", handler))
	return nil
}

var _, _, _, _, _ = watched, supervised, newTimedWorker, retryWelcomes, mount
