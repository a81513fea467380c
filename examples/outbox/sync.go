package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// sync delivers due messages one after the other, until none is left or the sink is unreachable.
// Being offline is not a failure of the message: it uses up no retry and keeps the order.
func (p *program) sync(ctx context.Context, flags *flag.FlagSet, args []string) (err error) {
	to := flags.String("to", "", "`sink`: an http or https URL, or a file to append to (default sent.jsonl beside the messages)")
	backoff := flags.Duration("backoff", time.Second, "delay before the first retry; doubles each time, up to an hour")
	timeout := flags.Duration("timeout", 30*time.Second, "time limit of one delivery")
	switch rest, err := p.parse(flags, "", args); {
	case err != nil:
		return err
	case len(rest) > 0:
		return usageError{fmt.Sprintf("sync takes no %q; name the sink with -to", rest[0])}
	case *timeout <= 0:
		return usageError{"-timeout must be positive"}
	}
	policy := pawl.Exponential(*backoff, 2).Cap(time.Hour).Jitter(pawl.DefaultJitter)
	if policy.Err() != nil {
		return usageError{"-backoff cannot be negative"}
	}
	path, err := p.path()
	if err != nil {
		return err
	}
	if *to == "" {
		*to = filepath.Join(filepath.Dir(path), "sent.jsonl")
	}
	c, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	sink, err := openSink(*to, *timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()

	d := &delivery{program: p, sink: sink}
	return c.Elect(ctx, func(ctx context.Context, q *bolt.Queue) error { // after a sync that runs already
		w := worker.New(q, &worker.Options{
			Policy:  policy,
			Timeout: *timeout,
			Drain:   time.Second, // time for the current delivery after ctrl-C
			Logger:  hclog.NewNullLogger(),
		})
		worker.Handle(w, send, d.run)
		return d.deliver(ctx, q, w)
	})
}

// delivery is one sync.
type delivery struct {
	*program
	sink      sink
	stop      context.CancelFunc // stops the current step
	offline   error              // why the sink is unreachable
	delivered int
}

// deliver delivers one message after the other, and prints the result.
func (d *delivery) deliver(ctx context.Context, q *bolt.Queue, w *worker.Worker) (err error) {
	for d.offline == nil && err == nil {
		var step context.Context
		step, d.stop = context.WithCancel(ctx)
		err = w.ProcessOnce(step)
		d.stop()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case d.offline != nil:
		err = d.offline
	case errors.Is(err, pawl.ErrEmpty):
		err = nil
	}
	return errors.Join(err, d.left(ctx, q))
}

// run delivers one message. If the sink is unreachable, run stops its own step and waits for the end of
// its context, so that the worker returns the message to its place.
func (d *delivery) run(ctx context.Context, job *pawl.Job[Message]) error {
	err := d.sink.Send(ctx, envelope{ID: job.ID, Added: job.Created, Text: job.Args.Text})
	switch {
	case errors.Is(err, errOffline):
		d.offline = err
		d.stop()
		<-ctx.Done()
	case err != nil:
		fmt.Fprintf(d.stderr, "not delivered %s, attempt %d of %d: %s\n", job.ID, job.Attempt, job.MaxRetries+1, line(err.Error(), 200))
	default:
		d.delivered++
		fmt.Fprintf(d.stdout, "delivered %s\n", job.ID)
	}
	return err
}

// left prints the result, or returns it as an error if messages are left.
func (d *delivery) left(ctx context.Context, q *bolt.Queue) error {
	stats, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	var waiting, dead int
	for _, c := range stats.Queues {
		waiting += c.Ready + c.Delayed + c.Leased
		dead += c.Dead
	}
	text := fmt.Sprintf("%d delivered, %d waiting, %d dead", d.delivered, waiting, dead)
	if waiting+dead > 0 {
		return fmt.Errorf("%s; see outbox list", text)
	}
	_, err = fmt.Fprintln(d.stdout, text)
	return err
}
