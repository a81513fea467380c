package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Widths of cells in characters. Names are cut late: people copy them.
const (
	nameWidth  = 48
	errorWidth = 60
)

// defaultLimit is how many jobs a list shows unless -n says otherwise.
const defaultLimit = 50

// jobFields is the part of --help that tells the fields of a jobView.
const jobFields = `  id, kind, queue, origin (the first queue), state, reason (of a dead job)
  priority, sequence, attempts, max_retries, failures, crashes
  created_at, not_before, deadline (times; deadline null: none)
  leased_at, died_at, completed_at (times; null in other states)
  cancelled (true for a leased job that was to end)
  unique_key, idempotency_key (null: none)
  timeout (a duration; null: the worker's)
  policy (null: the kind's or the worker's)
  headers (an object of texts), last_error
`

func jobListCommand() command {
	return command{words: "job list", args: "[-q QUEUE] [-s STATE] [-k KIND] [-n COUNT]", short: "jobs, by queue, state and kind", file: true,
		text: `Lists jobs with their completed runs of those allowed. WHEN tells since when a
ready, leased, dead or completed job is so, and when a delayed one is due. With
-s the jobs come in the order of that state (ready ones as they would run,
completed ones as their records go), else in the order in which they were made.

  -q QUEUE        of this queue
  -s STATE        ready, delayed, parked, leased, dead or completed
  -k, --kind KIND of this kind
  -n COUNT        at most so many, 0 for all (default 50)

Examples:
  jobctl --db jobs.db job list -s delayed
  jobctl --db jobs.db job list -n 0 -o jsonl | jq -r .id

JSON: a list of objects with
` + jobFields,
		setup: func(fs *flag.FlagSet) action {
			var filter filterFlags
			filter.register(fs)
			limit := limitFlag(fs)
			var state string
			fs.Func("s", "", oneOf(&state, states()...))
			return func(a *app, _ []string) error {
				return listJobs(a, pawl.Filter{State: pawl.State(state), Queue: filter.queue, Kind: filter.kind}, *limit)
			}
		},
	}
}

// states are the words that -s takes.
func states() (words []string) {
	for _, state := range pawl.States() {
		words = append(words, string(state))
	}
	return words
}

// limitFlag registers -n.
func limitFlag(fs *flag.FlagSet) *int {
	limit := defaultLimit
	fs.Func("n", "", func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return errors.New("it must be a number, 0 or more")
		}
		limit = n
		return nil
	})
	return &limit
}

func listJobs(a *app, f pawl.Filter, limit int) error {
	r, err := bolt.OpenReader(a.flags.db)
	if err != nil {
		return err
	}
	defer r.Close()
	now := a.now()
	out := a.listing(column{title: "ID"}, column{title: "STATE"}, column{title: "QUEUE"}, column{title: "KIND"},
		column{"RUNS", true}, column{"AGE", true}, column{title: "WHEN"})
	return a.list(out, r.Jobs(context.Background(), f), limit, func(e *pawl.Envelope) []string {
		return []string{e.ID.String(), string(e.State), cell(e.Queue, nameWidth), cell(e.Kind, nameWidth),
			runs(e), span(max(now.Sub(e.Created), 0)), when(e, now)}
	})
}

// list prints at most limit jobs, all for 0, and says what it left out.
func (a *app) list(out *listing, jobs iter.Seq2[*pawl.Envelope, error], limit int, row func(*pawl.Envelope) []string) error {
	damaged, more, err := out.fill(jobs, limit, row)
	out.close()
	switch {
	case err != nil:
		return err
	case more:
		a.say("the first %d are shown, there are more; -n 0 shows all", limit)
	case out.count == 0 && damaged.count == 0:
		a.say("no jobs match")
	}
	return damaged.err()
}

// fill adds jobs up to the limit and says whether there are more.
func (l *listing) fill(jobs iter.Seq2[*pawl.Envelope, error], limit int, row func(*pawl.Envelope) []string) (damaged damage, more bool, err error) {
	for e, err := range jobs {
		switch {
		case err != nil && e != nil: // this one alone cannot be read
			damaged.add(err)
			continue
		case err != nil:
			return damaged, false, err
		case limit > 0 && l.count == limit:
			return damaged, true, nil
		}
		if err := l.add(viewOf(e), row(e)...); err != nil {
			return damaged, false, err
		}
	}
	return damaged, false, nil
}

// runs is how many runs a job has completed of those that it may have.
func runs(e *pawl.Envelope) string {
	return fmt.Sprintf("%d/%d", e.Attempts, e.MaxRetries+1)
}

// when is the time that matters in a job's state.
func when(e *pawl.Envelope, now time.Time) string {
	switch e.State {
	case pawl.Parked:
		return "-"
	case pawl.Leased:
		return relative(now, e.LeasedSince)
	case pawl.Dead:
		return relative(now, e.Death.At)
	case pawl.Completed:
		return relative(now, e.Completed)
	}
	return relative(now, e.NotBefore)
}
