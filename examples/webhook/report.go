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
)

// left is how many events are neither delivered nor dead.
func left(ctx context.Context, q *bolt.Queue) (n int, err error) {
	stats, err := q.Stats(ctx)
	for _, c := range stats.Queues {
		n += c.Ready + c.Delayed + c.Leased
	}
	return n, err
}

// showProgress prints a line twice a second until the function that it returns is
// called.
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
					fmt.Fprintf(r.out, "  %3d delivered  %3d to go  %3d retries so far  %3d dead\n", c.Total(pawl.JobsSucceeded),
						n, c.Total(pawl.JobsRequeued), c.Total(pawl.JobsFailedPermanently))
				}
			}
		}
	})
	return func() { close(done); printing.Wait() }
}

// report prints the counters of this run and the dead letters in the file.
func (r *runner) report(ctx context.Context, q *bolt.Queue, own *endpoint) error {
	c := r.counters.Snapshot()
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	row := func(what string, n any, text string) { fmt.Fprintf(table, "%s\t%v\t%s\n", what, n, text) }
	fmt.Fprintln(table)
	row("delivered", c.Total(pawl.JobsSucceeded), "events that were answered by 2xx")
	row("skipped", c.Total(pawl.JobsSkippedIdempotent), "enqueued twice and run once")
	row("retried", c.Total(pawl.JobsRequeued), "runs that failed and had another one")
	row("timed out", c.Total(pawl.JobsTimedOut), "of the failed runs")
	row("dead", c.Total(pawl.JobsFailedPermanently), "events that were given up")
	if own != nil {
		requests, taken, repeated := own.seen()
		row("endpoint", taken, "events taken, once each by their keys")
		row("", repeated, "times it was sent one that it had taken already")
		row("", requests, "requests in all")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return r.deadLetters(ctx, q)
}

// deadLetters prints a table of them.
func (r *runner) deadLetters(ctx context.Context, q *bolt.Queue) error {
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nDEAD LETTER\tKIND\tEVENT\tREASON\tATTEMPTS\tLAST ERROR")
	letters := 0
	for letter, err := range dlq.List(ctx, q, pawl.Filter{Kind: deliver.Name()}) {
		if err != nil {
			return err
		}
		job, err := deliver.Job(letter)
		if err != nil {
			return err
		}
		last := ""
		if n := len(letter.History); n > 0 { // a letter that never ran has none
			last = printable(letter.History[n-1].Error)
		}
		letters++
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%s\n",
			letter.ID, letter.Kind, job.Args.Number, letter.Death.Reason, letter.Attempts, last)
	}
	if letters == 0 {
		return nil
	}
	return table.Flush()
}

// printable puts a text of the endpoint's on one line, with nothing in it that a
// terminal obeys.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
