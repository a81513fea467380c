// Webhook delivers events to an HTTP endpoint that fails, stalls and recovers. By default the
// endpoint is its own, on a loopback port; -url names another.
//
//		go run ./examples/webhook [-n N] [-state FILE] [-url URL]
//
//	  - deliver.go: a handler that sends requests with an idempotency key through handlers.Sender, which
//	    retries temporary failures with backoff or after Retry-After
//	  - report.go: the counters of the queue, and a table of its dead jobs
//	  - endpoint.go: the endpoint, which accepts each key once
//
// It takes a few seconds, prints its progress, and then how many events were delivered, retried,
// timed out and died, and why. With -state the queue is kept: a start after a kill continues with
// what is left, and enqueues N new events only if nothing is. Exit codes: 0 nothing is left to
// deliver, 1 failure, 2 usage, 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	r := &runner{out: stdout, log: slog.New(slog.DiscardHandler)}
	flags := flag.NewFlagSet("webhook", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&r.events, "n", 40, "how many events to deliver")
	flags.StringVar(&r.state, "state", "", "`file` of the queue, to keep it (default a temporary file)")
	flags.StringVar(&r.url, "url", "", "`endpoint` to deliver to instead of the built-in one")
	flags.DurationVar(&r.timeout, "timeout", 500*time.Millisecond, "time limit of one delivery")
	flags.DurationVar(&r.backoff, "backoff", 50*time.Millisecond, "delay before the first retry; use seconds for a real endpoint")
	flags.IntVar(&r.slots, "j", 8, "number of concurrent deliveries")
	verbose := flags.Bool("v", false, "log failed attempts")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if err := r.check(flags.Args()); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		flags.Usage()
		return 2
	}
	if *verbose {
		r.log = slog.New(slog.NewTextHandler(stderr, nil)) // an hclog.Logger works too
	}
	err := r.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; with -state the next start continues")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// runner is one run of the program.
type runner struct {
	events, slots    int
	state, url       string
	timeout, backoff time.Duration
	out              io.Writer
	log              pawl.Logger
	counters         metrics.Tally
}

func (r *runner) check(args []string) error {
	u, err := url.Parse(r.url)
	switch {
	case len(args) > 0:
		return fmt.Errorf("%q is not a flag", args[0])
	case r.url != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return fmt.Errorf("%q is not an http or https URL", r.url)
	case r.events < 1 || r.events > maxEvents:
		return fmt.Errorf("-n is not between 1 and %d", maxEvents)
	case r.slots < 1 || r.timeout <= 0 || r.backoff < 0:
		return errors.New("-j and -timeout must be positive, and -backoff not negative")
	}
	return nil
}

func (r *runner) run(ctx context.Context) (err error) {
	if r.state == "" {
		folder, err := os.MkdirTemp("", "pawl-webhook-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		r.state = filepath.Join(folder, "queue.db")
	}
	var own *endpoint
	if r.url == "" {
		if own, err = startEndpoint(); err != nil {
			return err
		}
		defer own.Close()
		r.url = own.URL()
	}
	q, err := bolt.Open(r.state, &bolt.Options{
		Logger:     r.log,
		Collector:  &r.counters,
		MaxCrashes: bolt.NoMaxCrashes, // killing the program is not the fault of an event
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := r.enqueue(ctx, q); err != nil {
		return err
	}

	c, err := newCourier(r.url)
	if err != nil {
		return err
	}
	defer c.sender.Close()
	w := worker.New(q, &worker.Options{Concurrency: r.slots, Logger: r.log, Drain: time.Second})
	worker.Handle(w, deliver, c.deliver)
	stopProgress := r.showProgress(ctx, q)
	err = w.Drain(ctx, pawl.WaitFinished)
	stopProgress()
	if err != nil {
		return err
	}
	return r.report(ctx, q, own)
}

// maxEvents is the number of events that fit into one batch together with those enqueued twice.
const maxEvents = pawl.MaxBatchJobs * 10 / 11

// enqueue stores the events of this run, unless an earlier run left some.
func (r *runner) enqueue(ctx context.Context, q *bolt.Queue) error {
	left, err := left(ctx, q)
	if err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(r.out, "continuing with %d events\n", left)
		return nil
	}
	var batch []*pawl.Envelope
	for i := range r.events {
		event := Event{ID: "evt_" + pawl.NewID(time.Now()).String(), Number: i + 1, Type: "invoice.paid"}
		times := 1
		if event.Number%10 == 1 {
			times = 2 // like an app that does not know whether it did
		}
		for range times {
			job, err := r.envelope(event)
			if err != nil {
				return err
			}
			batch = append(batch, job)
		}
	}
	fmt.Fprintf(r.out, "delivering %d events to %s\n", r.events, r.url)
	_, err = q.Enqueue(ctx, batch...) // all or none
	return err
}
