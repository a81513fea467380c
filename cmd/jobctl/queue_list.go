package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) queueListCommand() *cobra.Command {
	return a.command(&spec{
		use: "list", short: "queues with their jobs in each state", ids: true,
		long:    "Lists the queues in the order of their first jobs.",
		example: "  jobctl --db jobs.db queue list\n  jobctl --db jobs.db queue list -o jsonl | jq -r 'select(.paused).name'",
		json:    "a list of objects with\n  " + queueFields + "With -o ids the names of the queues.\n",
		run:     func(ctx context.Context, _ []string) error { return a.listQueues(ctx) },
	})
}

func (a *app) listQueues(ctx context.Context) error {
	return a.with(ctx, func(queue admin.Admin) error {
		s, err := queue.Stats(ctx)
		if err != nil {
			return err
		}
		now := a.now()
		out := &listing{app: a, table: *a.queueTable()}
		for i := range s.Queues {
			q := &s.Queues[i]
			if err := out.add(item{plain.Text(q.Name), viewOfQueue(&s, q, now), a.queueRow(&s, q, now)}); err != nil {
				return err
			}
		}
		out.close()
		if len(s.Queues) == 0 {
			a.say("no job was ever enqueued")
		}
		return nil
	})
}

// queueFields is the part of --help that lists the fields of a queueView.
const queueFields = `name, paused (true or false), state (paused, rests, served,
    no_worker, or stopped: no app has the file), ready, delayed,
    leased, dead, completed, held (how many keys a dead job holds),
    max_waiting (how many may be ready or delayed; null: any number),
    rests_until_at (no job of it starts until then; null: it does not rest),
    oldest_ready_at (a time), oldest_ready_age (a duration), succeeded,
    failed (how many attempts ended that way since the app
    began to serve; null for a stopped app)
`

// queueTable returns a table of queues; queueRow makes its rows.
func (a *app) queueTable() *table {
	t := a.table([]column{
		{title: "QUEUE", cut: middle}, {title: "READY", right: true}, {title: "DELAYED", right: true},
		{title: "LEASED", right: true}, {title: "DEAD", right: true, color: colorOfCount}, {title: "COMPLETED", right: true, spare: 1},
		{title: "OLDEST", right: true}, {title: "STATE", color: stateColors.of},
	}...)
	if a.wide() {
		t.columns = append(t.columns, column{title: "SUCCEEDED", right: true}, column{title: "FAILED", right: true}, column{title: "OLDEST SINCE"})
	}
	return &t
}

func (a *app) queueRow(s *admin.Stats, q *pawl.QueueStats, now time.Time) []string {
	oldest, since, state, succeeded, failed := "-", "-", plain.QueueState(q, s.Process != nil), "-", "-"
	if !q.Oldest.IsZero() {
		oldest, since = plain.Span(max(now.Sub(q.Oldest), 0)), a.clock(q.Oldest)
	}
	if s.Process != nil {
		done := s.Done[q.Name]
		succeeded, failed = strconv.FormatInt(done.Succeeded, 10), strconv.FormatInt(done.Failed, 10)
	}
	return []string{cell(q.Name, nameWidth), strconv.Itoa(q.Ready), strconv.Itoa(q.Delayed),
		strconv.Itoa(q.Leased), strconv.Itoa(q.Dead), strconv.Itoa(q.Completed), oldest, state, succeeded, failed, since}
}
