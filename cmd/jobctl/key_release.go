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
	Job    pawl.ID    `json:"job"`
	DryRun bool       `json:"dry_run"`
}

func (a *app) keyReleaseCommand() *cobra.Command {
	dry := false
	c := a.command(&spec{
		use: "release QUEUE KEY", short: "let a key that a dead job holds go on", args: 2,
		long: `Lets the other jobs of a key run although a dead job holds it. The job stays dead. If
it is retried later, it waits for its turn anew. A key that no dead job holds is an
error.`,
		example: "  jobctl --db jobs.db key list sync --held\n  jobctl --db jobs.db key release sync tenant/42",
		json:    "one object with queue, key, job (the ID of the dead job), dry_run\n",
		exits:   []int{exitNoMatch}, complete: a.completeQueue,
		run: func(ctx context.Context, args []string) error { return a.releaseKey(ctx, args, dry) },
	})
	dryRunFlag(c, &dry)
	return c
}

func (a *app) releaseKey(ctx context.Context, args []string, dry bool) error {
	name, err := oneQueue("key release", args)
	switch {
	case err != nil:
		return err
	case len(args) < 2 || args[1] == "":
		return usage("key release", "no key was named; add it after the queue")
	}
	return a.with(ctx, func(queue admin.Admin) error {
		if _, _, err := statsOf(ctx, queue, name); err != nil {
			return err
		}
		k, err := queue.Key(ctx, name, args[1])
		if err != nil && !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
		if !k.Held {
			return &failure{exitNoMatch, fmt.Sprintf("no dead job holds key %s of queue %s", plain.Text(args[1]), plain.Text(name)),
				"'jobctl key list " + plain.Text(name) + " --held' shows the keys that dead jobs hold."}
		}
		errs, err := queue.Do(ctx, admin.Action{Verb: admin.ReleaseKey, DryRun: dry}, k.Head)
		if err = errors.Join(append(errs, err)...); err != nil {
			return err
		}
		if !a.people() {
			return a.print(releasedView{admin.Text(name), admin.Text(k.Key), k.Head, dry})
		}
		did := "released"
		if dry {
			did = "would release"
		}
		fmt.Fprintf(a.stdout, "%s: key %s of queue %s, held by dead job %s\n", did, plain.Text(k.Key), plain.Text(name), k.Head)
		return nil
	})
}
