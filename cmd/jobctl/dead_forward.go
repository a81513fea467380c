package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
)

// forwarding is the destination of `dead forward`.
type forwarding struct {
	app   *app
	queue string
	fresh bool   // the user expects a new queue
	db    string // "" for where they are
	to    *app   // db, set by ready
}

func (a *app) deadForwardCommand() *cobra.Command {
	f := &forwarding{app: a}
	v := verb{
		words: "dead forward", do: "forward", did: "forwarded", ask: "Forward %s?", states: []pawl.State{pawl.Dead},
		only: "Only a dead job can be forwarded", miss: "not_dead",
		list:  "'jobctl dead list' shows the dead jobs of all queues.",
		ready: f.ready, apply: f.apply,
	}
	return a.changing(v, "forward", "move dead jobs to another queue or file",
		`Moves dead jobs to another queue, where they are ready. The headers of each say why it
was dead. With --to-db that queue is in another file, live or stopped,
which must exist: each job is stored there first and then removed here, so after an
interruption it is in at least one of the files.`,
		`  jobctl --db jobs.db dead forward --all --to-queue failed_jobs
  jobctl --db jobs.db dead forward -q email --to-db failed.db --older-than 7d`,
		func(c *cobra.Command) {
			c.Flags().Var(nameFlag(&f.queue, driver.CheckQueue), "to-queue", "to this `QUEUE` (default "+dlq.FailedJobs+")")
			c.Flags().BoolVar(&f.fresh, "create-queue", false, "even to a queue that does not exist yet")
			c.Flags().Var(textFlag(&f.db), "to-db", "to this `FILE`")
		})
}

// ready rejects a file that is missing, and the file that the jobs are in already.
func (f *forwarding) ready() error {
	if f.db == "" {
		return nil
	}
	f.to = f.app.aimed(f.db)
	if to := f.to.flags.server; to != "" {
		if to == f.app.flags.server {
			return f.same("queue")
		}
		return nil
	}
	to, err := os.Stat(f.db)
	if err != nil {
		return &failure{exitError, fmt.Sprintf("--to-db: %s", err), "Name the file of an existing queue; nothing was forwarded."}
	}
	if from, err := os.Stat(f.app.flags.db); err == nil && os.SameFile(from, to) {
		return f.same("file")
	}
	return nil
}

func (f *forwarding) same(place string) error {
	return usage("dead forward", "--to-db is the %s that the jobs are already in; omit it, and name a queue with --to-queue", place)
}

func (f *forwarding) apply(ctx context.Context, queue admin.Admin, how how, ids []pawl.ID) ([]error, error) {
	if f.db == "" {
		if err := f.checkQueue(ctx, queue); err != nil {
			return nil, err
		}
		return queue.Do(ctx, how.on(admin.Action{Verb: admin.Forward, Queue: f.queue}), ids...)
	}
	target, err := f.to.open(ctx)
	if err != nil {
		return nil, f.to.failure(err) // its messages name the other file
	}
	if how.dry {
		_, err = target.Stats(ctx) // whether it can be reached
	}
	if err != nil {
		return nil, errors.Join(f.to.failure(err), target.Close())
	}
	if err := f.checkQueue(ctx, target); err != nil {
		return nil, errors.Join(err, target.Close())
	}
	return f.over(ctx, queue, target, how, ids), target.Close()
}

// checkQueue rejects a misspelled queue, as enqueue does.
func (f *forwarding) checkQueue(ctx context.Context, target admin.Admin) error {
	if f.fresh || f.queue == "" || f.queue == dlq.FailedJobs {
		return nil
	}
	return noNewQueue(ctx, target, f.queue)
}

// over stores dead jobs in the target and removes those that are stored safely.
func (f *forwarding) over(ctx context.Context, queue, target admin.Admin, how how, ids []pawl.ID) []error {
	sink := dlq.ToQueue(target, f.queue)
	results := make([]error, len(ids))
	// Goroutines that store at the same time share a commit.
	admin.AtOnce(len(ids), 64, func(i int) { results[i] = f.move(ctx, queue, sink, how, ids[i]) })
	return results
}

// move stores one dead job and removes it here, unless it became dead again in the meantime: the
// target does not know about that.
func (f *forwarding) move(ctx context.Context, queue admin.Admin, sink dlq.Sink, how how, id pawl.ID) error {
	deadJob, err := queue.Job(ctx, id)
	switch {
	case err != nil:
		return err
	case deadJob.State != pawl.Dead:
		return driver.NotEligible(id, "it is %s, not dead", deadJob.State)
	case how.only != nil && !how.only.Matches(deadJob):
		return driver.NotEligible(id, "it no longer matches")
	case how.dry:
		return nil
	}
	died := deadJob.Death.At
	if err := sink.Store(ctx, deadJob); err != nil {
		return err
	}
	same := admin.Filter{Filter: pawl.Filter{State: pawl.Dead, DiedSince: died, DiedBefore: died.Add(1)}}
	errs, err := queue.Do(ctx, admin.Action{Verb: admin.Delete, If: &same}, id)
	switch {
	case err != nil:
		return fmt.Errorf("job %s: it is stored in %s, and may still be here: %w", id, f.to.flags.db, err)
	case errs[0] == nil, errors.Is(errs[0], pawl.ErrNotFound): // another process removed it
		return nil
	}
	return fmt.Errorf("job %s: it is stored in %s, and is still here: %w", id, f.to.flags.db, errs[0])
}
