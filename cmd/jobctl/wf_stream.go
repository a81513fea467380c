package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

func (a *app) wfStreamCommand() *cobra.Command {
	p := &streamPrinter{app: a}
	follow := false
	c := a.command(&spec{
		use: "stream REF NAME [--from N] [-f]", short: "the items of a stream of a run", args: -1,
		long: refText + `

Prints the items that a run has appended to a stream: the number, the time, the step that
appended it, if a step did, and the value. 'jobctl wf show' lists the streams of a run. A
stream keeps its last items, and a line says how many are not kept.

-f prints what a running app appends, within about a second, until the run has ended.`,
		example: `  jobctl --db jobs.db wf stream order:1042 progress
  jobctl --db jobs.db wf stream order:1042 progress --from 200 -f`,
		json: `one object with run, stream (its name), and
  items: a list of number, skipped (how many items before it are not kept),
    at (a time), step, attempt (the number of the first item of the same attempt
    of the step), and the fields of a value (see 'jobctl wf show'): size_bytes,
    encoding, value, base64, hex
`,
		exits:    []int{exitNoMatch},
		complete: a.completeRefs(1),
		run:      func(ctx context.Context, args []string) error { return p.run(ctx, args, follow) },
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	c.Flags().Uint64Var(&p.next, "from", 0, "the `NUMBER` of the first item")
	return c
}

// itemsView is the object of `wf stream`.
type itemsView struct {
	Run    pawl.ID              `json:"run"`
	Stream admin.Text           `json:"stream"`
	Items  []admin.WorkflowItem `json:"items"`
}

// streamPrinter prints the items of a stream.
type streamPrinter struct {
	app  *app
	next uint64 // the number of the next item
	view itemsView
}

func (p *streamPrinter) run(ctx context.Context, args []string, follow bool) error {
	const words = "wf stream"
	a := p.app
	r, err := oneRef(words, args)
	switch {
	case err != nil:
		return err
	case len(args) < 2:
		return misused(words, "no stream was named; add its name after the run")
	case len(args) > 2:
		return misused(words, "unexpected argument %q; one call prints one stream", args[2])
	case follow && !a.people():
		return usage(words, "-f prints lines for people; leave out -o")
	}
	p.view = itemsView{Stream: admin.Text(args[1]), Items: []admin.WorkflowItem{}}
	empty := true
	err = a.runFailure(a.with(ctx, func(queue admin.Admin) (err error) {
		w := queue.Workflows()
		if p.view.Run, err = r.find(ctx, w); err != nil {
			return err
		}
		if follow {
			return p.follow(ctx, queue)
		}
		empty, err = p.print(ctx, w)
		return err
	}))
	switch {
	case err != nil:
		return err
	case !a.people():
		return a.print(p.view)
	case empty && !follow:
		a.say("no items; 'jobctl wf show' lists the streams of the run")
	}
	return nil
}

// print prints the items, beginning with the next one.
func (p *streamPrinter) print(ctx context.Context, w admin.Workflows) (empty bool, err error) {
	for empty = true; ; empty = false {
		items, err := w.Items(ctx, p.view.Run, string(p.view.Stream), p.next)
		if len(items) == 0 || err != nil {
			return empty, err
		}
		for i := range items {
			if p.app.people() {
				p.line(&items[i])
			} else {
				p.view.Items = append(p.view.Items, admin.WorkflowItemOf(&items[i], admin.PayloadAuto))
			}
			p.next = items[i].N + 1
		}
	}
}

// line prints one item.
func (p *streamPrinter) line(i *workflow.Item[[]byte]) {
	if i.Skipped > 0 {
		fmt.Fprintf(p.app.stdout, "… %s not kept …\n", plural(int(i.Skipped), "item"))
	}
	by := ""
	if i.Step != "" {
		by = cell(i.Step, nameWidth) + "  "
	}
	fmt.Fprintf(p.app.stdout, "%d  %s  %s%s\n", i.N, p.app.moment(i.At), by, itemText(i.Value))
}

// itemText returns the value of an item on one line.
func itemText(value []byte) string {
	if workflow.Encoded(value) {
		return plural(len(value), "byte") + ", encoded by the codec of the app"
	}
	text, whole, err := admin.DecodeJSON(value, shownPayload)
	if err != nil {
		return plural(len(value), "byte") + ", not readable"
	}
	line := plain.Text(string(text))
	if !whole {
		line += " …"
	}
	return line
}

// follow prints what is appended until the run has ended.
func (p *streamPrinter) follow(ctx context.Context, queue admin.Admin) error {
	isLive, err := live(ctx, queue)
	if err != nil {
		return err
	}
	return p.app.follow(ctx, func() (ended bool, err error) {
		info, err := queue.Workflows().Show(ctx, p.view.Run, admin.RunInfo)
		if err != nil {
			return false, err
		}
		_, err = p.print(ctx, queue.Workflows()) // after the state, so that the last items are among them
		return info.Status.Ended() || !isLive, err
	})
}
