package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
	"github.com/gopawl/pawl/workflow"
)

// change is one command that changes jobs or workflow runs. It reads first and then closes the
// file, so nothing is locked while the user considers the question. It opens a file for writing
// only if there is something to do. Then it changes only what the question listed, and only if
// the filters still select it in the changing transaction.
type change struct {
	app       *app
	verb      verb
	selection selection
	limit     int
	all       bool
	dry       bool

	chosen  bool // by filters or --all
	stopped bool // no app has the file
	results results
	damaged damage // what the filters found but could not read
}

func (c *change) run(ctx context.Context, args []string) error {
	c.chosen = c.all || c.selection.given()
	if err := c.check(args); err != nil {
		return err
	}
	if err := c.selection.read(c.app, c.verb.words, args); err != nil {
		return err
	}
	if err := c.app.with(ctx, func(queue admin.Admin) error { return c.choose(ctx, queue) }); err != nil {
		if c.verb.runs {
			return c.app.runFailure(err)
		}
		return err
	}
	if c.chosen && len(c.results) == 0 {
		return c.nothing()
	}
	if c.chosen && !c.dry && !c.app.flags.yes {
		if err := c.app.askAbout(ctx, len(c.results), c.verb.noun(), c.selection.String(), c.verb.ask); err != nil {
			return err
		}
	}
	err := c.write(ctx)
	if reportErr := c.report(ctx); err == nil {
		err = reportErr
	}
	if err == nil {
		err = c.app.damaged(&c.damaged, c.verb.noun())
	}
	c.hint()
	return err
}

// check rejects incompatible flags before reading anything.
func (c *change) check(args []string) error {
	one, some := "an ID", "IDs"
	if c.verb.runs {
		one, some = "a run", "IDs or FLOW:ID"
	}
	switch {
	case c.all && len(args) > 0:
		return misused(c.verb.words, "--all and %s were given; choose one", one)
	case c.chosen && len(args) > 0:
		return misused(c.verb.words, "%s and a filter were given; choose one", one)
	case c.limit > 0 && len(args) > 0:
		return misused(c.verb.words, "-n limits how many the filters select, but %s was given; choose one", one)
	case !c.chosen && len(args) == 0:
		return misused(c.verb.words, "no %s was named; add %s, - to read them, filters, or --all", c.verb.noun(), some)
	}
	if c.chosen && !c.dry {
		if err := c.app.askable(c.verb.words, c.verb.do+" all that match"); err != nil {
			return err
		}
	}
	if c.verb.ready != nil {
		return c.verb.ready()
	}
	return nil
}

// choose finds what to change. For the file of a stopped app, or in a dry run, it also finds
// the reasons why some items cannot be changed. Otherwise the app returns these with the
// change.
func (c *change) choose(ctx context.Context, queue admin.Admin) (err error) {
	if c.verb.later || !c.chosen {
		isLive, err := live(ctx, queue)
		if err != nil {
			return err
		}
		c.stopped = !isLive
	}
	if c.chosen {
		c.results, err = c.selection.match(ctx, queue, c.limit, &c.damaged)
	} else {
		c.results, err = c.selection.named(ctx, queue)
	}
	if err != nil || !c.dry && (c.chosen || !c.stopped) {
		return err
	}
	todo := c.results.possible()
	if err := c.try(ctx, queue, todo); err != nil || c.dry {
		return err
	}
	for _, r := range todo { // other errors may no longer occur once the file is open
		if !ofOne(r.err) && !errors.Is(r.err, pawl.ErrNotEligible) {
			r.err = nil
		}
	}
	return nil
}

// try records what the change would do to each item. The code of the change itself decides.
func (c *change) try(ctx context.Context, queue admin.Admin, todo []*result) error {
	for portion := range slices.Chunk(todo, c.verb.tried()) {
		errs, err := c.verb.apply(ctx, queue, c.how(true), idsOf(portion))
		if err != nil {
			return err
		}
		for i, r := range portion {
			r.err = errs[i]
		}
	}
	return nil
}

func (c *change) how(dry bool) how {
	h := how{dry: dry}
	if c.chosen {
		c.selection.condition(&h)
	}
	return h
}

func idsOf(results []*result) []pawl.ID {
	ids := make([]pawl.ID, len(results))
	for i, r := range results {
		ids[i] = r.id
	}
	return ids
}

// askAbout reports how many things match and waits for a yes to a question such as "Retry %s?",
// for "it" or "them".
func (a *app) askAbout(ctx context.Context, n int, noun, filter, question string) error {
	matches, them := "1 "+noun+" matches", "it"
	if n > 1 {
		matches, them = fmt.Sprintf("%d %ss match", n, noun), "them"
	}
	a.say("%s (%s).", matches, filter)
	if !a.confirm(ctx, fmt.Sprintf(question, them)) {
		return notConfirmed()
	}
	return nil
}

// nothing returns the error for filters that select nothing.
func (c *change) nothing() error {
	if err := c.app.damaged(&c.damaged, c.verb.noun()); err != nil {
		return err
	}
	return &failure{exitNoMatch, "no " + c.verb.noun() + " matches (" + c.selection.String() + ")", c.verb.list}
}

// write changes the selected items in portions, so that no transaction is large and an
// interruption takes effect between two of them.
func (c *change) write(ctx context.Context) error {
	todo := c.results.possible()
	if len(todo) == 0 || c.dry {
		return nil
	}
	for _, r := range todo {
		r.err = errNotTried
	}
	opened, err := c.app.changeBehindBar(ctx, c.verb.words, progress.Unit(c.verb.noun()+"s"), func(queue admin.Admin, report progressFunc) error {
		return c.portions(ctx, queue, todo, report)
	})
	if !opened {
		c.results = nil
	}
	return err
}

// progressFunc receives how much of a change is done.
type progressFunc func(done, total int64)

// changeBehindBar opens the queue for a change that shows its progress.
func (a *app) changeBehindBar(ctx context.Context, words string, things progress.Unit, change func(admin.Admin, progressFunc) error) (opened bool, err error) {
	queue, err := a.open(ctx)
	if err != nil {
		return false, err
	}
	bar := a.bar(words, things)
	err = change(queue, bar.Set)
	bar.Stop()
	return true, errors.Join(err, queue.Close())
}

// atOnce is how many jobs or runs change between two checks of the context.
const atOnce = admin.MaxIDs

func (c *change) portions(ctx context.Context, queue admin.Admin, todo []*result, report progressFunc) error {
	done, total := int64(0), int64(len(todo))
	for portion := range slices.Chunk(todo, atOnce) {
		if ctx.Err() != nil {
			return nil // errNotTried marks the rest
		}
		ctx := context.WithoutCancel(ctx) // a portion is short, and its outcome must be known
		errs, err := c.verb.apply(ctx, queue, c.how(false), idsOf(portion))
		for i, r := range portion {
			if r.err = err; err == nil {
				r.err = errs[i]
			}
		}
		switch {
		case err != nil && done == 0 && !uncertain(err):
			c.results = nil // nothing was done, and the error says why
			return err
		case err != nil:
			return nil // each item of the portion has the error
		}
		done += int64(len(portion))
		report(done, total)
	}
	return nil
}

// uncertain reports whether something may have been done despite an error.
func uncertain(err error) bool {
	return errors.Is(err, pawl.ErrUnknownOutcome) || errors.Is(err, admin.ErrUnreachable) || errors.Is(err, context.Canceled)
}

// ofOne reports whether an error concerns one job or run, and not the whole queue.
func ofOne(err error) bool {
	return errors.Is(err, pawl.ErrNotFound) || errors.Is(err, workflow.ErrNotFound) || errors.Is(err, workflow.ErrNotRunning) || errors.Is(err, pawl.ErrCorrupt)
}

// hint prints what the outcome of a change of runs still depends on.
func (c *change) hint() {
	if !c.verb.runs || !c.app.people() {
		return
	}
	blocked, one := 0, pawl.ID{}
	for _, r := range c.results.possible() {
		if c.verb.noBlocked && r.blocked {
			blocked, one = blocked+1, r.id
		}
	}
	switch {
	case blocked == 1:
		c.app.say("note: run %s stays blocked until a matching build runs it; 'jobctl wf terminate' ends it without undoing anything", one)
	case blocked > 1:
		c.app.say("note: %d of the runs stay blocked until a matching build runs them; 'jobctl wf terminate' ends them without undoing anything", blocked)
	}
	if c.verb.later && c.stopped && !c.dry && len(c.results.possible()) > 0 {
		c.app.say("note: no app is running; the change takes effect when one runs")
	}
}
