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

// releasedView is the object of `key release`.
type releasedView struct {
	Queue  admin.Text `json:"queue"`
	Key    admin.Text `json:"key"`
	Job    *pawl.ID   `json:"job"`
	Rested bool       `json:"rested"`
	DryRun bool       `json:"dry_run"`
}

func (a *app) keyReleaseCommand() *cobra.Command {
	dry := false
	c := a.command(&spec{
		use: "release QUEUE KEY", short: "unblock a key that a dead job holds, or that rests", args: 2,
		long: `Lets the other jobs of a key run although a dead job holds it. The job stays dead. If
it is retried later, it waits for its turn again. The command also ends the rest of a
key after a throttle. A key that neither rests nor is held is an error.`,
		example: "  jobctl --db jobs.db key list sync --held\n  jobctl --db jobs.db key release sync tenant/42",
		json:    "one object with queue, key, job (the ID of the dead job; null: none),\n  rested, dry_run\n",
		exits:   []int{exitNoMatch}, complete: a.completeQueue,
		run: func(ctx context.Context, args []string) error { return a.releaseKey(ctx, args, dry) },
	})
	dryRunFlag(c, &dry)
	return c
}

func (a *app) releaseKey(ctx context.Context, args []string, dry bool) error {
	return a.withKey(ctx, "key release", args, func(queue admin.Admin, q *pawl.QueueStats, key string) error {
		name := q.Name
		k, err := queue.Key(ctx, name, key)
		if err != nil && !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
		if !k.Held && k.Rests.IsZero() {
			return &failure{exitNoMatch, fmt.Sprintf("no dead job holds key %s of queue %s, and the key does not rest", plain.Text(key), plain.Text(name)),
				"'jobctl key list " + plain.Text(name) + "' shows what keys wait for."}
		}
		if err := releaseKey(ctx, queue, name, &k, dry); err != nil {
			return err
		}
		v := releasedView{Queue: admin.Text(name), Key: admin.Text(k.Key), Rested: !k.Rests.IsZero(), DryRun: dry}
		why := "that rested"
		if k.Held {
			v.Job, why = &k.Head, "held by dead job "+k.Head.String()
		}
		did := "released"
		if dry {
			did = "would release"
		}
		return a.result(v, "%s: key %s of queue %s, %s\n", did, plain.Text(k.Key), plain.Text(name), why)
	})
}

// releaseKey releases a key, or ends its rest, unless dry is set.
func releaseKey(ctx context.Context, queue admin.Admin, name string, k *pawl.KeyStats, dry bool) error {
	if k.Held {
		errs, err := queue.Do(ctx, admin.Action{Verb: admin.ReleaseKey, DryRun: dry}, k.Head)
		if err = errors.Join(append(errs, err)...); err != nil {
			return err
		}
	}
	if k.Rests.IsZero() || dry {
		return nil
	}
	return queue.EndRest(ctx, name, k.Key)
}
