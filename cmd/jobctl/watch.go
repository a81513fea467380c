package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

// eventTypes are the values of --events.
var eventTypes = []pawl.EventType{
	pawl.EventEnqueued, pawl.EventReplaced, pawl.EventFetched, pawl.EventSucceeded, pawl.EventSkipped, pawl.EventRetried,
	pawl.EventDied, pawl.EventReleased, pawl.EventSnoozed, pawl.EventRunNow,
	pawl.EventReaped, pawl.EventRecovered, pawl.EventCancelled, pawl.EventRevived, pawl.EventDeleted,
	pawl.EventEdited,
}

// eventShort maps words to several event types.
var eventShort = map[string][]pawl.EventType{
	"failed": {pawl.EventRetried, pawl.EventDied},
	"dead":   {pawl.EventDied},
}

// watching is one `watch`.
type watching struct {
	queues []string         // empty: all
	types  []pawl.EventType // nil: all
	limit  int
	lines  bool // for people, even into a pipe
	seen   int
}

// eventView is a line of `watch`.
type eventView struct {
	At       admin.Stamp `json:"at"`
	Event    string      `json:"event"`
	ID       string      `json:"id"`
	Kind     admin.Text  `json:"kind"`
	Queue    admin.Text  `json:"queue"`
	Attempts int         `json:"attempts"`
	Took     admin.Span  `json:"took"`
	TimedOut bool        `json:"timed_out"`
	Delay    admin.Span  `json:"delay"`
	Reason   *admin.Text `json:"reason"`
	Error    *admin.Text `json:"error"`
	Missed   int64       `json:"missed"`
}

func (a *app) watchCommand() *cobra.Command {
	w := &watching{}
	var c *cobra.Command
	c = a.command(&spec{
		use: "watch [-q QUEUE] [--events EVENT,...] [-n COUNT]", short: "events of the jobs of a running app, as they happen",
		long: `Prints each event of a job, once it is durable, until interrupted: one line each, or
with -o jsonl one JSON object per line. It needs a running app. Events that are not
read in time are lost, and the next line reports how many.`,
		example: `  jobctl --db jobs.db watch -q email
  jobctl --db jobs.db watch --events failed -o jsonl | jq -r .error`,
		json: `with -o jsonl, or if standard output is not a terminal, one object per
  line with at, event, id, kind, queue, attempts (completed attempts), took (the
  duration of an attempt that ended), timed_out, delay (until the retry), reason
  (of a dead job), error, missed (how many events before this one were lost)
`,
		run: func(ctx context.Context, _ []string) error {
			w.lines = c.Flags().Changed("output")
			return w.run(ctx, a)
		},
	})
	c.Flags().VarP(eachFlag(&w.queues, driver.CheckQueue), "queue", "q", "only jobs in `QUEUE`; may be repeated")
	c.Flags().Var(manyFlag{flagFunc{w.events}}, "events", "only these `EVENTS`, separated by commas: "+strings.Join(eventWords(), ", "))
	c.Flags().VarP(countFlag(&w.limit), "limit", "n", "end after `COUNT` events")
	a.completeFlag(c, "events", cobra.FixedCompletions(eventWords(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func eventWords() []string { return append([]string{"failed", "dead"}, texts(eventTypes)...) }

// events parses the words of --events.
func (w *watching) events(text string) error {
	for _, word := range strings.Split(text, ",") {
		switch several, ok := eventShort[word]; {
		case ok:
			w.types = append(w.types, several...)
		case slices.Contains(eventTypes, pawl.EventType(word)):
			w.types = append(w.types, pawl.EventType(word))
		default:
			return fmt.Errorf("%q is not one of %s", word, strings.Join(eventWords(), ", "))
		}
	}
	return nil
}

func (w *watching) run(ctx context.Context, a *app) error {
	switch {
	case a.flags.output == "json":
		return endless("watch")
	case a.people() && !a.screen && !w.lines:
		a.flags.output = "jsonl"
	}
	err := a.with(ctx, func(queue admin.Admin) error {
		if err := w.note(ctx, a, queue); err != nil {
			return err
		}
		for e, err := range queue.Events(ctx) {
			if err != nil {
				return err
			}
			if err := w.printEvent(a, &e); err != nil {
				return err
			}
			if w.limit > 0 && w.seen >= w.limit {
				return nil
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return interrupted()
	}
	return err
}

// note reports missing queues: they may be created later, or be misspelled.
func (w *watching) note(ctx context.Context, a *app, queue admin.Admin) error {
	for _, name := range w.queues {
		err := knownQueues(ctx, queue, []string{name})
		if f := new(failure); errors.As(err, &f) {
			a.say("note: %s yet; its events follow once a job is enqueued on it", f.text)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// printEvent prints an event that the user asked for.
func (w *watching) printEvent(a *app, e *admin.Event) error {
	if e.Job == nil || len(w.queues) > 0 && !slices.Contains(w.queues, e.Job.Queue) || w.types != nil && !slices.Contains(w.types, e.Type) {
		return nil
	}
	w.seen++
	if !a.people() {
		if err := a.print(viewOfEvent(e)); err != nil {
			return err
		}
	} else {
		if e.Missed > 0 {
			a.say("note: %s missed: they arrived faster than they were read", plural(int(e.Missed), "event"))
		}
		fmt.Fprintln(a.stdout, a.eventLine(e))
	}
	if err := a.stdout.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// eventLine returns an event for people. Lines arrive one by one, so columns have fixed widths.
func (a *app) eventLine(e *admin.Event) string {
	line := fmt.Sprintf("%s  %-9s  %s  %s  %s", e.At.In(a.location()).Format("15:04:05.000"), e.Type,
		e.Job.ID, cell(e.Job.Queue, nameWidth), cell(e.Job.Kind, nameWidth))
	if e.Took > 0 {
		line += "  took " + roughly(e.Took)
	}
	if e.Type == pawl.EventRetried {
		line += "  again in " + roughly(e.Delay)
	}
	if e.Type == pawl.EventDied && e.Job.Death != nil {
		line += "  " + cell(string(e.Job.Death.Reason), nameWidth)
	}
	if e.Cause != "" {
		line += "  " + firstLine(e.Cause, errorWidth)
	}
	return line
}

// roughly returns a duration with about three digits; JSON has all of them.
func roughly(d time.Duration) string {
	for unit := time.Second; unit > 1; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

func viewOfEvent(e *admin.Event) eventView {
	v := eventView{
		At: admin.Stamp{Time: e.At}, Event: string(e.Type), ID: e.Job.ID.String(),
		Kind: admin.Text(e.Job.Kind), Queue: admin.Text(e.Job.Queue), Attempts: e.Job.Attempts,
		Took: admin.Span(e.Took), TimedOut: e.TimedOut, Delay: admin.Span(e.Delay), Error: optional(e.Cause), Missed: e.Missed,
	}
	if e.Type == pawl.EventDied && e.Job.Death != nil {
		v.Reason = (*admin.Text)(&e.Job.Death.Reason)
	}
	return v
}
