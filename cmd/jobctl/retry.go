package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
)

func deadRetryCommand() command {
	return command{words: "dead retry", args: "ID... | --all [-q QUEUE] [-k KIND] [-y]", short: "make dead letters ready again", file: true, ids: true,
		text: `Makes dead letters ready again. Their history stays and their attempts begin
again from 0. An ID of - reads IDs from standard input.

  --all           all dead letters that the flags below choose, after a question
  -q QUEUE        with --all: of this queue
  -k, --kind KIND with --all: of this kind
  -y              do not ask, and convert a file of an older release
  --keep-attempts go on counting: a job whose retries are exhausted runs once

Of several IDs it retries those it can; the exit code is that of the first that
it could not. A dead letter whose unique key another job has meanwhile, or whose
deadline has passed, stays dead. As with every open to write, jobs that were
leased when their process ended become ready too, or dead if they were to end.

A file of an older release is converted first, after a question or with -y: the
older release cannot open it from then on.

Examples:
  jobctl --db jobs.db dead retry --all -q email
  jobctl --db jobs.db dead list -n 0 -o jsonl | jq -r .id |
    jobctl --db jobs.db dead retry -

JSON: one object with retried and skipped (how many), and
  jobs: a list of id, error and
        result (retried, not_found, not_dead, conflict (its unique key or its
                deadline is against it), damaged or failed)
With -o jsonl the objects of jobs alone, one a line.
`,
		setup: func(fs *flag.FlagSet) action {
			var r retry
			r.filter.register(fs)
			fs.BoolVar(&r.all, "all", false, "")
			fs.BoolVar(&r.yes, "y", false, "")
			fs.BoolVar(&r.keep, "keep-attempts", false, "")
			return r.run
		},
	}
}

// retry is one `dead retry`. It looks first, with a reader: so nothing is locked
// while somebody thinks about the question, and a file is opened to write only when
// there is something to do.
type retry struct {
	filter         filterFlags
	all, yes, keep bool

	results results
	damaged damage // dead letters that --all met and cannot be read

	converted bool // the file had an older format
}

func (r *retry) run(a *app, args []string) error {
	if err := r.check(a, args); err != nil {
		return err
	}
	if err := r.choose(a, args); err != nil {
		return err
	}
	if r.all {
		if len(r.results) == 0 {
			return r.nothing()
		}
		if err := r.ask(a); err != nil {
			return err
		}
	}
	err := r.write(a)
	if reportErr := r.results.report(a, r.all); reportErr != nil {
		return reportErr
	}
	if err != nil {
		return err
	}
	return r.damaged.err()
}

// check refuses flags that do not go together, before anything is looked at.
func (r *retry) check(a *app, args []string) error {
	switch {
	case r.all && len(args) > 0:
		return usage("dead retry", "--all and an ID were given; name jobs in one way")
	case r.all && !r.yes && a.flags.output != "table":
		return usage("dead retry", "-o %s does not ask; add -y to retry all that match", a.flags.output)
	case r.all && !r.yes && !a.terminal:
		return usage("dead retry", "there is no terminal to ask on; add -y to retry all that match")
	case !r.all && len(args) == 0:
		return usage("dead retry", "no job was named; add IDs, - to read them, or --all")
	case !r.all && (r.filter.queue != "" || r.filter.kind != ""):
		return usage("dead retry", "-q and -k choose among --all; IDs need no filter")
	}
	return nil
}

// choose finds the jobs to retry, and the reasons why others cannot be.
func (r *retry) choose(a *app, args []string) error {
	ids, err := a.readIDs(args)
	if err != nil {
		return err
	}
	reader, err := bolt.OpenReader(a.flags.db)
	if errors.Is(err, bolt.ErrOlderFormat) {
		if err := r.convert(a); err != nil {
			return err
		}
		reader, err = bolt.OpenReader(a.flags.db)
	}
	if err != nil {
		return err
	}
	defer reader.Close()
	ctx := context.Background()
	if !r.all {
		for _, id := range ids {
			_, err := dlq.Inspect(ctx, reader, id)
			r.results = append(r.results, result{id, err})
		}
		return nil
	}
	for e, err := range dlq.List(ctx, reader, pawl.Filter{Queue: r.filter.queue, Kind: r.filter.kind}) {
		switch {
		case err != nil && e != nil:
			r.damaged.add(err)
		case err != nil:
			return err
		default:
			r.results = append(r.results, result{id: e.ID})
		}
	}
	return nil
}

// ask names the count and waits for a yes.
func (r *retry) ask(a *app) error {
	if r.yes {
		return nil
	}
	matches, them := "1 job matches", "it"
	if n := len(r.results); n > 1 {
		matches, them = fmt.Sprintf("%d jobs match", n), "them"
	}
	a.say("%s (%s).", matches, r.chosen())
	if !a.confirm("Retry " + them + "?") {
		if r.converted {
			return &failure{exitError, "not confirmed, no job was retried", ""}
		}
		return notConfirmed()
	}
	return nil
}

// chosen repeats the filter.
func (r *retry) chosen() string {
	text := "state=dead"
	if r.filter.kind != "" {
		text = "kind=" + r.filter.kind + " " + text
	}
	if r.filter.queue != "" {
		text = "queue=" + r.filter.queue + " " + text
	}
	return text
}

// nothing is the answer to --all when nothing can be retried.
func (r *retry) nothing() error {
	if err := r.damaged.err(); err != nil {
		return err
	}
	return &failure{exitNoMatch, "no job matches (" + r.chosen() + ")", "'jobctl dead list' shows the dead letters of all queues."}
}

// retriesAtOnce is how many retries wait for one commit together.
const retriesAtOnce = 64

// write retries what was chosen.
func (r *retry) write(a *app) error {
	todo := r.results.possible()
	if len(todo) == 0 {
		return nil
	}
	q, err := a.openToWrite()
	if err != nil {
		r.results = nil
		return err
	}
	ctx := context.Background()
	opts := &dlq.RetryOptions{KeepAttempts: r.keep}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(todo), retriesAtOnce) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(todo)); i = next.Add(1) - 1 {
				_, err := dlq.Retry(ctx, q, opts, todo[i].id)
				if errors.Is(err, pawl.ErrConflict) {
					if _, other := dlq.Inspect(ctx, q, todo[i].id); other == nil { // it is dead still
						err = heldBack{err}
					}
				}
				todo[i].err = err
			}
		})
	}
	wg.Wait()
	return q.Close()
}
