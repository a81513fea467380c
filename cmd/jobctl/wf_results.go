package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// runResult is what became of one run of a change.
type runResult struct {
	name string // as it was given
	run  pawl.ID

	blocked bool
	err     error // nil: done, or still to be done
}

// runChangeView is the object of a command that changes runs. Its first field is what was
// done to them, as in a [changeView].
type runChangeView struct {
	did     string
	Done    int             `json:"-"`
	Skipped int             `json:"skipped"`
	DryRun  bool            `json:"dry_run"`
	Runs    []runResultView `json:"runs"`
}

// MarshalJSON implements json.Marshaler.
func (v runChangeView) MarshalJSON() ([]byte, error) {
	type fields runChangeView
	rest, err := encode(fields(v))
	return append(fmt.Appendf(nil, `{"%s":%d,`, fieldOf(v.did), v.Done), rest[min(1, len(rest)):]...), err
}

type runResultView struct {
	Run    string  `json:"run"`
	Result string  `json:"result"` // what was done, or not_found, ended, conflict, damaged, failed, not_tried
	Error  *string `json:"error"`
}

// outcome is the word of an error in JSON.
func (c *runChange) outcome(err error) string {
	switch {
	case err == nil:
		return fieldOf(c.verb.did)
	case err == errNotTried:
		return "not_tried"
	case errors.Is(err, workflow.ErrNotFound):
		return "not_found"
	case errors.Is(err, workflow.ErrNotRunning):
		return "ended"
	case errors.Is(err, pawl.ErrConflict):
		return "conflict"
	case errors.Is(err, pawl.ErrCorrupt):
		return "damaged"
	}
	return "failed"
}

// report prints what was done and returns what was not.
func (c *runChange) report(ctx context.Context) error {
	if err := c.print(); err != nil {
		return err
	}
	v := verdict{noun: "run", did: c.verb.did, all: len(c.results), again: againOf(c.chosen, "wf show")}
	for _, r := range c.results {
		switch word := c.outcome(r.err); {
		case r.err == nil:
			v.done++
		case r.err == errNotTried:
			v.untried++
		case c.chosen && (word == "not_found" || word == "ended"): // somebody else was faster
		default:
			v.failed = append(v.failed, r.err)
		}
	}
	return v.err(ctx, func(err error) *failure { return c.app.failure(c.app.runFailure(err)) })
}

func (c *runChange) print() error {
	var done []pawl.ID
	v := runChangeView{did: c.verb.did, DryRun: c.dry, Runs: []runResultView{}}
	for _, r := range c.results {
		one := runResultView{Run: r.name, Result: c.outcome(r.err)}
		if !r.run.IsZero() {
			one.Run = r.run.String()
		}
		if r.err != nil {
			v.Skipped++
			text := r.err.Error()
			one.Error = &text
		} else {
			v.Done++
			done = append(done, r.run)
		}
		v.Runs = append(v.Runs, one)
	}
	return printChange(c.app, outcomes[runResultView]{v, v.Runs, done, c.verb.did, 0, v.Skipped, c.dry, c.chosen})
}
