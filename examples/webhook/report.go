package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/metrics"
)

// left returns the number of events that are neither delivered nor dead.
func left(ctx context.Context, q *bolt.Queue) (n int, err error) {
	stats, err := q.Stats(ctx)
	for _, c := range stats.Queues {
		n += c.Ready + c.Delayed + c.Leased
	}
	return n, err
}

// showProgress prints a line twice a second until stop is called.
func (r *runner) showProgress(ctx context.Context, q *bolt.Queue) (stop func()) {
	done := make(chan struct{})
	var printing sync.WaitGroup
	printing.Go(func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if n, err := left(ctx, q); err == nil {
					c := r.counters.Snapshot()
					fmt.Fprintf(r.out, "  %3d delivered  %3d to go  %3d retries so far  %3d dead\n", c.Total(metrics.JobsSucceeded),
						n, c.Total(metrics.JobsRequeued), c.Total(metrics.JobsFailedPermanently))
				}
			}
		}
	})
	return func() { close(done); printing.Wait() }
}

// report prints the counters of this run and the dead jobs in the file.
func (r *runner) report(ctx context.Context, q *bolt.Queue, own *endpoint) error {
	c := r.counters.Snapshot()
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	row := func(what string, n any, text string) { fmt.Fprintf(table, "%s\t%v\t%s\n", what, n, text) }
	fmt.Fprintln(table)
	row("delivered", c.Total(metrics.JobsSucceeded), "events answered with 2xx")
	row("skipped", c.Total(metrics.JobsSkippedIdempotent), "enqueued twice, run once")
	row("retried", c.Total(metrics.JobsRequeued), "failed attempts that were retried")
	row("timed out", c.Total(metrics.JobsTimedOut), "failed attempts that took too long")
	row("dead", c.Total(metrics.JobsFailedPermanently), "events that will not run again")
	if own != nil {
		requests, taken, repeated := own.seen()
		row("endpoint", taken, "events taken, once for each key")
		row("", repeated, "requests for events taken before")
		row("", requests, "requests in total")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return r.deadJobs(ctx, q)
}

// deadJobs prints a table of the dead jobs.
func (r *runner) deadJobs(ctx context.Context, q *bolt.Queue) error {
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nDEAD JOB\tKIND\tEVENT\tREASON\tATTEMPTS\tLAST ERROR")
	n := 0
	for dead, err := range dlq.List(ctx, q, pawl.Filter{Kind: deliver.Name()}) {
		if err != nil {
			return err
		}
		job, err := deliver.Job(dead)
		if err != nil {
			return err
		}
		last := ""
		if i := len(dead.History) - 1; i >= 0 { // a job that never ran has none
			last = printable(dead.History[i].Error)
		}
		n++
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%s\n",
			dead.ID, dead.Kind, job.Args.Number, dead.Death.Reason, dead.Attempts, last)
	}
	if n == 0 {
		return nil
	}
	return table.Flush()
}

// printable puts text from the endpoint on one line, without control characters for the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
