package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// change is one command that changes jobs. It looks first and lets go of the file: so
// nothing is locked while somebody thinks about the question, and a file is opened to write
// only when there is something to do. Then it does exactly what it asked about.
type change struct {
	app    *app
	verb   verb
	filter filterFlags
	limit  int
	all    bool
	dry    bool

	chosen  bool // by filters or --all
	results results
	damaged damage // jobs that the filters met and that cannot be read
}

func (c *change) run(ctx context.Context, args []string) error {
	c.chosen = c.all || c.filter.given()
	if err := c.check(args); err != nil {
		return err
	}
	ids, err := c.app.readIDs(c.verb.words, args)
	if err != nil {
		return err
	}
	if err := c.app.with(ctx, func(queue admin.Admin) error { return c.choose(ctx, queue, ids) }); err != nil {
		return err
	}
	if c.chosen && len(c.results) == 0 {
		return c.nothing()
	}
	if c.chosen && !c.dry && !c.app.flags.yes {
		if err := c.ask(ctx); err != nil {
			return err
		}
	}
	err = c.write(ctx)
	if reportErr := c.report(ctx); err == nil {
		err = reportErr
	}
	if err == nil {
		err = c.damaged.err()
	}
	return err
}

// check refuses flags that do not go together, before anything is looked at.
func (c *change) check(args []string) error {
	words := c.verb.words
	switch {
	case c.all && len(args) > 0:
		return usage(words, "--all and an ID were given; name jobs in one way")
	case c.chosen && len(args) > 0:
		return usage(words, "an ID and a filter were given; name jobs in one way")
	case !c.chosen && len(args) == 0:
		return usage(words, "no job was named; add IDs, - to read them, filters, or --all")
	}
	if c.chosen && !c.dry {
		if err := c.app.askable(words, c.verb.do+" all that match"); err != nil {
			return err
		}
	}
	if c.verb.ready != nil {
		return c.verb.ready()
	}
	return nil
}

// choose finds the jobs to change, and the reasons why others cannot be.
func (c *change) choose(ctx context.Context, queue admin.Admin, ids []pawl.ID) error {
	if c.chosen {
		return c.match(ctx, queue)
	}
	for _, id := range ids {
		c.results = append(c.results, result{id: id})
	}
	isLive, err := live(ctx, queue)
	if err != nil || isLive && !c.dry {
		return err // the app tells of each when it is asked to do it
	}
	for i := range c.results {
		e, err := queue.Job(ctx, ids[i])
		if err == nil && !slices.Contains(c.verb.states, e.State) {
			err = c.wrongState(e)
		}
		if err != nil && e == nil && !ofOneJob(err) {
			return err
		}
		c.results[i].err = err
	}
	return nil
}

// wrongState is the error of a job in a state in which the verb does not apply.
func (c *change) wrongState(e *pawl.Envelope) error {
	return fmt.Errorf("job %s: %w: it is %s, not %s", e.ID, pawl.ErrConflict, e.State, listed(stateWords(c.verb.states)))
}

// ofOneJob reports whether an error is about one job, and not about the whole queue.
func ofOneJob(err error) bool {
	return errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrConflict) || errors.Is(err, pawl.ErrCorrupt)
}

// match lists what the filters choose.
func (c *change) match(ctx context.Context, queue admin.Admin) error {
	for _, f := range c.filter.filters() {
		q := admin.Query{Filter: f, Detail: admin.IDs}
		for e, err := range admin.Jobs(ctx, queue, q) {
			switch {
			case c.limit > 0 && len(c.results) == c.limit:
				return nil
			case err != nil && e != nil:
				c.damaged.add(err)
			case err != nil:
				return err
			default:
				c.results = append(c.results, result{id: e.ID})
			}
		}
	}
	return nil
}

// ask names the count and waits for a yes.
func (c *change) ask(ctx context.Context) error {
	matches, them := "1 job matches", "it"
	if n := len(c.results); n > 1 {
		matches, them = fmt.Sprintf("%d jobs match", n), "them"
	}
	c.app.say("%s (%s).", matches, c.filter.String())
	if !c.app.confirm(ctx, fmt.Sprintf(c.verb.ask, them)) {
		return notConfirmed()
	}
	return nil
}

// nothing is the answer to filters that choose nothing.
func (c *change) nothing() error {
	if err := c.damaged.err(); err != nil {
		return err
	}
	return &failure{exitNoMatch, "no job matches (" + c.filter.String() + ")", c.verb.list}
}

// write does what was chosen, in portions, so that no transaction is large and an
// interruption comes between two of them.
func (c *change) write(ctx context.Context) error {
	todo := c.results.possible()
	if len(todo) == 0 || c.dry {
		return nil
	}
	for _, r := range todo {
		r.err = errNotTried
	}
	queue, err := c.app.open(ctx)
	if err != nil {
		c.results = nil
		return err
	}
	bar := c.app.bar(c.verb.words, "jobs")
	err = c.portions(ctx, queue, todo, bar.Set)
	bar.Stop()
	return errors.Join(err, queue.Close())
}

// atOnce is how many jobs are changed between two looks at the context.
const atOnce = admin.MaxIDs

func (c *change) portions(ctx context.Context, queue admin.Admin, todo []*result, tell func(done, total int64)) error {
	done, total := int64(0), int64(len(todo))
	for portion := range slices.Chunk(todo, atOnce) {
		if ctx.Err() != nil {
			return nil // what was not tried says so
		}
		ctx := context.WithoutCancel(ctx) // a portion is short, and what became of it is to be known
		ids := make([]pawl.ID, len(portion))
		for i, r := range portion {
			ids[i] = r.id
		}
		errs, err := c.verb.apply(ctx, queue, ids)
		for i, r := range portion {
			switch {
			case err != nil:
				r.err = err
			default:
				r.err = c.heldBack(ctx, queue, r.id, errs[i])
			}
		}
		switch {
		case err != nil && done == 0 && !uncertain(err):
			c.results = nil // nothing was done, and the error says why
			return err
		case err != nil:
			return nil // each of the portion has the error
		}
		done += int64(len(portion))
		tell(done, total)
	}
	return nil
}

// uncertain reports whether something may have been done in spite of an error.
func uncertain(err error) bool {
	return errors.Is(err, pawl.ErrUnknownOutcome) || errors.Is(err, admin.ErrUnreachable) || errors.Is(err, context.Canceled)
}

// heldBack marks the error of a dead letter that is dead still, although it is dead letters
// that are retried: another job has its unique key, or its deadline has passed.
func (c *change) heldBack(ctx context.Context, queue admin.Admin, id pawl.ID, err error) error {
	if !errors.Is(err, pawl.ErrConflict) {
		return err
	}
	if e, other := queue.Job(ctx, id); c.verb.held && other == nil && slices.Contains(c.verb.states, e.State) {
		return heldBack{err}
	}
	return err
}

type heldBack struct{ error }

func (h heldBack) Unwrap() error { return h.error }
