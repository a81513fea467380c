package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// keyFields is the part of --help that lists the fields of an admin.KeyView.
const keyFields = `  queue, key, running, ready (blocked jobs included), blocked (how many jobs)
  backlog (ready and delayed jobs, if the queue bounds their number for each
    key; otherwise 0)
  next_at (when its rate or its rest lets the next job start; null: now)
  rests_until_at (no job of it starts until then; null: it does not rest)
  held (a dead job holds the key, so no job of it runs)
  holders (a list of IDs of jobs that run; empty in a list of keys)
  waiting (a list of IDs of blocked jobs; empty in a list of keys)
  head (the ID of the job whose turn it is, if the jobs of a key run in order)
`

func (a *app) keyListCommand() *cobra.Command {
	p, only := new(paging), new(keyFilter)
	c := a.command(&spec{
		use: "list QUEUE [--blocked] [--held] [-n N] [--after KEY]", short: "keys of a queue, and what they wait for", args: 1, ids: true,
		long: `Lists the keys of a queue that limits how many jobs of a key run or start. They are the
keys with ready or running jobs, and those whose rate is partly used up. Short keys
come first. NEXT is when the rate of a key lets its next job start, or "held" if a
dead job holds the key.`,
		example: "  jobctl --db jobs.db key list sync\n  jobctl --db jobs.db key list sync --blocked -n 0",
		json:    "one object with next (a cursor for --after; null at the end) and\n  keys: a list of objects with the fields below\nWith -o jsonl only the objects of keys, one per line.\n" + keyFields,
		exits:   []int{exitNoMatch}, complete: a.completeQueue,
		run: func(ctx context.Context, args []string) error { return a.listKeys(ctx, args, p, only) },
	})
	p.register(c, "keys")
	c.Flags().BoolVar(&only.blocked, "blocked", false, "only keys with blocked jobs")
	c.Flags().BoolVar(&only.held, "held", false, "only keys that a dead job holds")
	return c
}

// keyFilter chooses keys of a list.
type keyFilter struct{ blocked, held bool }

func (a *app) listKeys(ctx context.Context, args []string, p *paging, only *keyFilter) error {
	name, err := oneQueue("key list", args)
	if err != nil {
		return err
	}
	out := a.listing([]column{
		{title: "KEY", cut: middle}, {title: "RUNNING", right: true}, {title: "READY", right: true}, {title: "BLOCKED", right: true}, {title: "NEXT"},
	})
	out.of = "keys"
	none := "no key matches"
	err = a.with(ctx, func(queue admin.Admin) error {
		_, q, err := statsOf(ctx, queue, name)
		if err != nil {
			return err
		}
		if !q.Limits.PerKey() {
			none = fmt.Sprintf("queue %s has no limits per key", plain.Text(name))
		}
		return p.read(out, func(after string, limit int, _ bool) (items []item, next string, err error) {
			page, err := queue.Keys(ctx, admin.KeyQuery{Queue: name, After: after, Limit: limit})
			if err != nil {
				return nil, "", err
			}
			for _, k := range page.Keys {
				if (!only.blocked || k.Blocked > 0) && (!only.held || k.Held) {
					items = append(items, item{plain.Text(k.Key), admin.KeyOf(name, k), a.keyRow(k)})
				}
			}
			return items, page.Next, nil
		})
	})
	return p.end(out, err, new(damage), "key", none)
}

func (a *app) keyRow(k pawl.KeyStats) []string {
	next := "-"
	switch {
	case k.Held:
		next = "held"
	case !k.Rests.IsZero():
		next = "rests, " + relative(a.now(), k.Rests)
	case !k.Next.IsZero():
		next = relative(a.now(), k.Next)
	}
	return []string{cell(k.Key, nameWidth), fmt.Sprint(k.Running), fmt.Sprint(k.Ready), fmt.Sprint(k.Blocked), next}
}

func (a *app) keyShowCommand() *cobra.Command {
	return a.command(&spec{
		use: "show QUEUE KEY", short: "one key, and its jobs that run or are blocked", args: 2,
		long:    "Prints how many jobs of a key run, are ready, and are blocked, and some of\nthose that run and that are blocked, up to 10 each.",
		example: "  jobctl --db jobs.db key show sync tenant/42",
		json:    "one object with\n" + keyFields,
		exits:   []int{exitNoMatch}, complete: a.completeQueue,
		run: a.showKey,
	})
}

// withKey calls fn with the queue and the key that the arguments name. The queue must exist.
func (a *app) withKey(ctx context.Context, words string, args []string, fn func(queue admin.Admin, q *pawl.QueueStats, key string) error) error {
	name, err := oneQueue(words, args)
	switch {
	case err != nil:
		return err
	case len(args) < 2 || args[1] == "":
		return usage(words, "no key was named; add it after the queue")
	}
	return a.with(ctx, func(queue admin.Admin) error {
		_, q, err := statsOf(ctx, queue, name)
		if err != nil {
			return err
		}
		return fn(queue, q, args[1])
	})
}

func (a *app) showKey(ctx context.Context, args []string) error {
	return a.withKey(ctx, "key show", args, func(queue admin.Admin, q *pawl.QueueStats, key string) error {
		k, err := queue.Key(ctx, q.Name, key)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
			return &failure{exitNoMatch, err.Error(), "'jobctl key list " + plain.Text(q.Name) + "' shows the keys."}
		case err != nil:
			return err
		case !a.people():
			return a.print(admin.KeyOf(q.Name, k))
		}
		a.fact("key", "%s", plain.Text(k.Key))
		a.fact("queue", "%s", plain.Text(q.Name))
		running := fmt.Sprint(k.Running)
		if n := q.Limits.RunningPerKey; n > 0 {
			running += fmt.Sprintf(" of %d", n)
		}
		a.fact("running", "%s", running)
		a.fact("ready", "%d, %d of them blocked", k.Ready, k.Blocked)
		if bound := q.Limits.MaxWaitingPerKey; bound > 0 {
			a.fact("waiting", "%d of at most %d", k.Backlog, bound)
		}
		if !k.Rests.IsZero() {
			a.fact("rests", "until %s, or 'jobctl key release'", a.moment(k.Rests))
		}
		a.timeFact("next", k.Next)
		if !k.Head.IsZero() {
			a.fact("first", "%s", k.Head)
		}
		if k.Held {
			a.fact("held", "the first job is dead; retry or delete it, or 'jobctl key release'")
		}
		for _, id := range k.Holders {
			a.fact("runs", "%s", id)
		}
		for _, id := range k.Waiting {
			a.fact("blocked", "%s", id)
		}
		return nil
	})
}
