package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) jobWaitCommand() *cobra.Command {
	return a.command(&spec{
		use: "wait ID", short: "wait until a job has ended", args: -1, ids: true,
		long: `Waits until a job has succeeded or is dead, and prints its result if it has one. The
exit code is 0 for a success and 8 for a dead job. It does not poll the queue. A job
that waits for a retry has not ended. A running app must serve the queue; in the file
of a stopped app only a job that has ended can be waited for. The job goes on if the
command is interrupted.`,
		example:  "  jobctl --db jobs.db job wait 01902a3b-7a40-7000-8000-0123456789ab && echo done",
		json:     "one object with\n" + jobFields + "  payload, cursor, result: as in 'job show', with size_bytes, encoding,\n    value, base64, hex\n",
		exits:    []int{exitNoMatch, exitDead},
		complete: a.completeIDs(pawl.States()...),
		run: func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usage("job wait", "%d IDs were given; name one job", len(args))
			}
			return a.withJob(ctx, "job wait", args, func(queue admin.Admin, id pawl.ID) error { return a.wait(ctx, queue, id) })
		},
	})
}

// wait waits until a job has ended, and prints the outcome.
func (a *app) wait(ctx context.Context, queue admin.Admin, id pawl.ID) error {
	e, err := queue.Await(ctx, id)
	if err != nil {
		return err
	}
	if a.flags.output == "ids" {
		fmt.Fprintln(a.stdout, e.ID)
	}
	return a.showEnd(e)
}

// showEnd prints the outcome of a job that has ended, without its ID.
func (a *app) showEnd(e *pawl.Envelope) error {
	switch {
	case a.flags.output == "ids":
	case !a.people():
		if err := a.print(admin.JobOf(e, admin.PayloadAuto)); err != nil {
			return err
		}
	case e.Result != nil:
		a.showPayload("result", e.Result, "auto")
	}
	if e.Death == nil {
		return nil
	}
	text := fmt.Sprintf("job %s is dead (%s)", e.ID, plain.Text(string(e.Death.Reason)))
	if last := e.LastError(); last != "" {
		text += ": " + plain.Text(last)
	}
	return &failure{exitDead, text, "'jobctl job show' has its history, and 'jobctl job retry' runs it again."}
}
