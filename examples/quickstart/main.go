// Quickstart enqueues three greetings and runs them: one succeeds, one succeeds at the second attempt,
// and one fails permanently and becomes dead. It ends by itself and prints what happened.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/worker"
)

type Welcome struct{ To string }

var SendWelcome = pawl.Define[Welcome]("mail.welcome", pawl.MaxRetries(5),
	pawl.Backoff(pawl.Exponential(200*time.Millisecond, 2).Cap(5*time.Minute).Jitter(0.15)))

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "pawl-quickstart-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	quiet := hclog.NewNullLogger()
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: quiet})
	if err != nil {
		return err
	}
	defer q.Close()

	for _, to := range []string{"ada@example.com", "busy@example.com", "nobody"} {
		job, err := SendWelcome.Enqueue(ctx, q, Welcome{To: to})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "enqueued  %s  %s\n", job.ID, to)
	}

	w := worker.New(q, &worker.Options{Concurrency: 4, Logger: quiet})
	worker.Handle(w, SendWelcome, func(ctx context.Context, job *pawl.Job[Welcome]) error {
		err := send(job.Args.To, job.Attempt)
		fmt.Fprintf(out, "attempt %d %s  %s: %v\n", job.Attempt, job.ID, job.Args.To, result(err))
		return err
	})
	if err := w.Drain(ctx, pawl.WaitFinished); err != nil {
		return err
	}

	for job, err := range dlq.List(ctx, q, pawl.Filter{}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "dead      %s  %s, attempts: %d, %s\n",
			job.ID, job.Death.Reason, job.Attempts, job.History[len(job.History)-1].Error)
	}
	return nil
}

// send stands in for a mail server that is busy at first and strict about addresses.
func send(to string, attempt int) error {
	switch {
	case to == "nobody":
		return pawl.Permanent(errors.New("address has no @"))
	case to == "busy@example.com" && attempt == 1:
		return errors.New("mailbox is busy")
	}
	return nil
}

func result(err error) string {
	if err != nil {
		return err.Error()
	}
	return "sent"
}
