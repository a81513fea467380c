package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/worker"
)

type Welcome struct{ To string }

var SendWelcome = pawl.Define[Welcome]("mail.welcome", pawl.MaxRetries(5))

func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	q, err := bolt.Open("jobs.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if _, err := SendWelcome.Enqueue(ctx, q, Welcome{To: "ada@example.com"}, pawl.Delay(time.Minute)); err != nil {
		log.Fatal(err)
	}
	w := worker.New(q, &worker.Options{Concurrency: 16})
	worker.Handle(w, SendWelcome, func(ctx context.Context, job *pawl.Job[Welcome]) error {
		return send(ctx, job.Args.To)
	})
	if err := w.Run(ctx); err != nil { // blocks until ctx ends, then stops cleanly
		log.Fatal(err)
	}
}

func send(context.Context, string) error { return nil }

var errGone = errors.New("gone")

// What a handler returns decides what happens to its job.
func ExamplePermanent() {
	handler := func(ctx context.Context, job *pawl.Job[Welcome]) error {
		err := send(ctx, job.Args.To)
		switch {
		case errors.Is(err, errGone):
			return pawl.Permanent(err) // no retry helps: the job is dead
		case errors.Is(err, context.DeadlineExceeded):
			return pawl.RetryAfter(time.Hour, err) // the attempt failed; the next one runs in an hour
		case time.Now().Weekday() == time.Sunday:
			return pawl.Snooze(24 * time.Hour) // not a failure; the job runs again tomorrow
		}
		return err // nil: done; an error: retried by the policy
	}
	fmt.Println(handler != nil)
	// Output: true
}

// One commit stores all jobs of a batch or none.
func ExampleKind_Envelope() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "pawl-*")
	defer os.RemoveAll(dir)
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	var batch []*pawl.Envelope
	for _, to := range []string{"ada@example.com", "grace@example.com"} {
		job, err := SendWelcome.Envelope(Welcome{To: to}, pawl.Priority(10))
		if err != nil {
			log.Fatal(err)
		}
		batch = append(batch, job)
	}
	jobs, err := q.Enqueue(ctx, batch...)

	stats, _ := q.Stats(ctx)
	fmt.Println(err, len(jobs), stats.Queues[0].Ready)
	// Output: <nil> 2 2
}

// Dead jobs stay until you retry or delete them.
func Example_deadJobs() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "pawl-*")
	defer os.RemoveAll(dir)
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	for job, err := range dlq.List(ctx, q, pawl.Filter{Kind: "mail.welcome"}) {
		if err != nil {
			log.Print(err) // a damaged job; the list continues
			continue
		}
		fmt.Println(job.ID, job.Death.Reason, job.Attempts, job.LastError())
	}
	n, err := dlq.RetryAll(ctx, q, nil, pawl.Filter{Kind: "mail.welcome"})
	fmt.Println(n, err)
	// Output: 0 <nil>
}

// Three policies that work well.
func ExampleExponential() {
	// Money: retry for long, and at random times, so that a server that recovers is not flooded.
	careful := []pawl.Option{pawl.MaxRetries(5),
		pawl.Backoff(pawl.Exponential(time.Second, 2).Cap(time.Minute).FullJitter())}

	// Something a person waits for: soon or not at all.
	quick := []pawl.Option{pawl.MaxRetries(2),
		pawl.Backoff(pawl.Exponential(100*time.Millisecond, 2).Cap(5 * time.Second).FullJitter())}

	// One shot.
	once := []pawl.Option{pawl.MaxRetries(0)}

	fmt.Println(len(careful), len(quick), len(once))
	// Output: 2 2 1
}
