package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
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
		if err := c.app.askAbout(ctx, len(c.results), "job", c.filter.String(), c.verb.ask); err != nil {
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
	if err := namedOnce(c.verb.words, "job", "an ID", "IDs", args, c.all, c.chosen); err != nil {
		return err
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

// namedOnce refuses a change of nothing, and one of things that were named in two ways.
func namedOnce(words, noun, one, some string, args []string, all, chosen bool) error {
	switch {
	case all && len(args) > 0:
		return misused(words, "--all and %s were given; name %ss in one way", one, noun)
	case chosen && len(args) > 0:
		return misused(words, "%s and a filter were given; name %ss in one way", one, noun)
	case !chosen && len(args) == 0:
		return misused(words, "no %s was named; add %s, - to read them, filters, or --all", noun, some)
	}
	return nil
}

// choose finds the jobs to change. Over a stopped file, or in a dry run, it also finds the
// reasons why some cannot be changed; otherwise the app tells of each when it is asked to.
func (c *change) choose(ctx context.Context, queue admin.Admin, ids []pawl.ID) error {
	if c.chosen {
		if err := c.match(ctx, queue); err != nil || !c.dry {
			return err
		}
		return c.try(ctx, queue)
	}
	for _, id := range ids {
		c.results = append(c.results, result{id: id})
	}
	isLive, err := live(ctx, queue)
	if err != nil || isLive && !c.dry {
		return err
	}
	if err := c.try(ctx, queue); err != nil || c.dry {
		return err
	}
	for i := range c.results { // what else is against it may be gone once the file is open
		err := c.results[i].err
		if !errors.Is(err, pawl.ErrNotEligible) && !errors.Is(err, pawl.ErrNotFound) && !errors.Is(err, pawl.ErrCorrupt) {
			c.results[i].err = nil
		}
	}
	return nil
}

// try notes what the change would make of each job. The decision is that of the change itself.
func (c *change) try(ctx context.Context, queue admin.Admin) error {
	for portion := range slices.Chunk(c.results.possible(), admin.MaxDryIDs) {
		errs, err := c.verb.apply(ctx, queue, how{c.condition(), true}, idsOf(portion))
		if err != nil {
			return err
		}
		for i, r := range portion {
			r.err = errs[i]
		}
	}
	return nil
}

// condition is what must hold of the jobs when they are changed: the filters that chose them.
func (c *change) condition() *admin.Filter {
	if !c.chosen {
		return nil
	}
	all := c.filter.filters() // which differ in the state alone
	one := all[0]
	if len(all) > 1 {
		one.State = ""
		for _, f := range all {
			one.States = append(one.States, f.State)
		}
	}
	return &one
}

func idsOf(results []*result) []pawl.ID {
	ids := make([]pawl.ID, len(results))
	for i, r := range results {
		ids[i] = r.id
	}
	return ids
}

// match lists what the filters choose.
func (c *change) match(ctx context.Context, queue admin.Admin) error {
	if err := c.filter.known(ctx, queue); err != nil {
		return err
	}
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

// askAbout names how many things match and waits for a yes to a question such as "Retry %s?",
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
	opened, err := c.app.changeBehindBar(ctx, c.verb.words, "jobs", func(queue admin.Admin, tell tell) error {
		return c.portions(ctx, queue, todo, tell)
	})
	if !opened {
		c.results = nil
	}
	return err
}

// tell is told how much of a change is done.
type tell func(done, total int64)

// changeBehindBar opens the queue for a change that shows how far it is.
func (a *app) changeBehindBar(ctx context.Context, words string, things progress.Unit, change func(admin.Admin, tell) error) (opened bool, err error) {
	queue, err := a.open(ctx)
	if err != nil {
		return false, err
	}
	bar := a.bar(words, things)
	err = change(queue, bar.Set)
	bar.Stop()
	return true, errors.Join(err, queue.Close())
}

// atOnce is how many jobs are changed between two looks at the context.
const atOnce = admin.MaxIDs

func (c *change) portions(ctx context.Context, queue admin.Admin, todo []*result, tell tell) error {
	done, total := int64(0), int64(len(todo))
	for portion := range slices.Chunk(todo, atOnce) {
		if ctx.Err() != nil {
			return nil // what was not tried says so
		}
		ctx := context.WithoutCancel(ctx) // a portion is short, and what became of it is to be known
		errs, err := c.verb.apply(ctx, queue, how{only: c.condition()}, idsOf(portion))
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
