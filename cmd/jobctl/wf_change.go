package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// openStatuses are those of a run that has not ended.
var openStatuses = []workflow.Status{
	workflow.Running, workflow.Sleeping, workflow.Waiting, workflow.Paused, workflow.Blocked, workflow.Dead,
}

// runVerb is what a command does to runs.
type runVerb struct {
	word      string            // "cancel"
	did       string            // "cancelled"
	ask       string            // "Cancel %s?", for "it" or "them"
	statuses  []workflow.Status // that filters choose among
	later     bool              // it comes when the app runs
	noBlocked bool              // it does not end a blocked run
	apply     func(ctx context.Context, w admin.Workflows, run pawl.ID) error
}

func (v *runVerb) words() string { return "wf " + v.word }

// runChange is one command that changes runs. As a [change] it looks first, lets go of the
// file while somebody thinks about the question, and does exactly what it asked about.
type runChange struct {
	app    *app
	verb   runVerb
	filter runFilter
	limit  int
	all    bool
	dry    bool

	chosen  bool // by filters or --all
	stopped bool // no app has the file
	results []runResult
	damaged damage // runs that the filters met and that cannot be read
}

// changingRuns is a command that changes runs: those that are named, or that filters choose.
func (a *app) changingRuns(v runVerb, short, long, example string, flags func(*cobra.Command)) *cobra.Command {
	ch := &runChange{app: a, verb: v}
	c := a.command(&spec{
		use: v.word + " REF... | - | FILTER... | --all", short: short, args: -1, ids: true,
		long: long + "\n\n" + refText + ` A REF of - reads them from standard input, one a line.

Of several runs it does those it can; the exit code is that of the first that it
could not. By filters or --all it looks first, names the count and asks; -o json,
jsonl and ids do not ask and need -y.`,
		example: example,
		json: fmt.Sprintf(`one object with %s and skipped (how many), dry_run, and
  runs: a list of run, error and
        result (%s, not_found, ended,
                conflict (a cancel was requested already), damaged, failed, or
                not_tried (an error or an interruption came first))
With -o jsonl the objects of runs alone, one a line; with -o ids the IDs of
those that were %s.
`, fieldOf(v.did), fieldOf(v.did), v.did),
		exits:    []int{exitNoMatch, exitLocked, exitDamaged, exitConflict, exitFormat},
		complete: a.completeRefs(-1, v.statuses...),
		run:      ch.run,
	})
	c.Flags().BoolVar(&ch.all, "all", false, "all that there are, after a question")
	ch.filter.register(a, c, v.statuses...)
	c.Flags().VarP(countFlag(&ch.limit), "limit", "n", "at most `COUNT` of those that the filters choose")
	_ = c.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	dryRunFlag(c, &ch.dry)
	if flags != nil {
		flags(c)
	}
	return c
}

func (c *runChange) run(ctx context.Context, args []string) error {
	c.chosen = c.all || c.filter.given()
	if err := c.check(args); err != nil {
		return err
	}
	refs, err := c.app.readRefs(c.verb.words(), args)
	if err != nil {
		return err
	}
	err = c.app.runFailure(c.app.with(ctx, func(queue admin.Admin) error {
		isLive, err := live(ctx, queue)
		if err != nil {
			return err
		}
		c.stopped = !isLive
		return c.choose(ctx, queue.Workflows(), refs)
	}))
	if err != nil {
		return err
	}
	if c.chosen && len(c.results) == 0 {
		if err := damagedRuns(&c.damaged); err != nil {
			return err
		}
		return &failure{exitNoMatch, "no run matches (" + c.filter.String() + ")", "'jobctl wf list' shows the runs of all flows."}
	}
	if c.chosen && !c.dry && !c.app.flags.yes {
		if err := c.app.askAbout(ctx, len(c.results), "run", c.filter.String(), c.verb.ask); err != nil {
			return err
		}
	}
	err = c.write(ctx)
	if reportErr := c.report(ctx); err == nil {
		err = reportErr
	}
	if err == nil {
		err = damagedRuns(&c.damaged)
	}
	c.hintBlocked()
	if c.verb.later && c.stopped && !c.dry && c.app.people() && slices.ContainsFunc(c.results, func(r runResult) bool { return r.err == nil }) {
		c.app.say("note: no app runs; what was asked of runs takes effect when it does")
	}
	return err
}

// check refuses flags that do not go together, before anything is looked at.
func (c *runChange) check(args []string) error {
	words := c.verb.words()
	if err := namedOnce(words, "run", "a run", "IDs or FLOW:ID", args, c.all, c.chosen); err != nil {
		return err
	}
	if c.chosen && !c.dry {
		return c.app.askable(words, c.verb.word+" all that match")
	}
	return nil
}

// choose finds the runs to change, and the reasons why others cannot be.
func (c *runChange) choose(ctx context.Context, w admin.Workflows, refs []ref) error {
	if c.chosen {
		return c.match(ctx, w)
	}
	for _, r := range refs {
		run, err := r.find(ctx, w)
		blocked := false
		if err == nil && (c.dry || c.verb.noBlocked) {
			blocked, err = lookAtOpen(ctx, w, run)
		}
		if err != nil && !ofOneRun(err) {
			return err
		}
		if !slices.ContainsFunc(c.results, func(other runResult) bool { return err == nil && other.run == run }) {
			c.results = append(c.results, runResult{r.text, run, blocked, err})
		}
	}
	return nil
}

// lookAtOpen gives the error that a change of a run would have, as far as a look tells, and
// whether the run is blocked.
func lookAtOpen(ctx context.Context, w admin.Workflows, run pawl.ID) (blocked bool, err error) {
	all, err := w.Show(ctx, run, admin.RunInfo)
	if err != nil {
		return false, err
	}
	return all.Status == workflow.Blocked, openRun(all)
}

// hintBlocked says what ends runs that stay blocked.
func (c *runChange) hintBlocked() {
	n, one := 0, pawl.ID{}
	for _, r := range c.results {
		if c.verb.noBlocked && r.blocked && r.err == nil {
			n, one = n+1, r.run
		}
	}
	switch {
	case n == 0 || !c.app.people():
	case n == 1:
		c.app.say("note: run %s is blocked and stays so until a build that fits runs it; 'jobctl wf terminate' ends it with nothing undone", one)
	default:
		c.app.say("note: %d of the runs are blocked and stay so until a build that fits runs them; 'jobctl wf terminate' ends them with nothing undone", n)
	}
}

// openRun refuses a run that has ended.
func openRun(run *admin.WorkflowRun) error {
	if run.Status.Ended() {
		return fmt.Errorf("run %s: %w", run.Run, workflow.ErrNotRunning)
	}
	return nil
}

// match lists what the filters choose.
func (c *runChange) match(ctx context.Context, w admin.Workflows) error {
	for run, err := range admin.WorkflowRuns(ctx, w, c.filter.query()) {
		switch {
		case err != nil:
			return err
		case c.limit > 0 && len(c.results) == c.limit:
			return nil
		}
		if err := damagedRun(&run); err != nil {
			c.damaged.add(err)
		} else if c.filter.fits(&run) {
			c.results = append(c.results, runResult{run.Run.String(), run.Run, run.Status == workflow.Blocked, nil})
		}
	}
	return nil
}

// runsAtOnce is how many runs are changed at a time. They share commits.
const runsAtOnce = 16

// write does what was chosen, some at a time, so that an interruption comes between them.
func (c *runChange) write(ctx context.Context) error {
	var todo []*runResult
	for i := range c.results {
		if r := &c.results[i]; r.err == nil && !c.dry {
			r.err = errNotTried
			todo = append(todo, r)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	opened, err := c.app.changeBehindBar(ctx, c.verb.words(), "runs", func(queue admin.Admin, tell tell) error {
		return c.portions(ctx, queue.Workflows(), todo, tell)
	})
	if !opened {
		c.results = nil
	}
	return err
}

func (c *runChange) portions(ctx context.Context, w admin.Workflows, todo []*runResult, tell tell) error {
	done, total := 0, len(todo)
	for portion := range slices.Chunk(todo, runsAtOnce) {
		if ctx.Err() != nil {
			return nil // what was not tried says so
		}
		ctx := context.WithoutCancel(ctx) // what became of those that were begun is to be known
		var all sync.WaitGroup
		for _, r := range portion {
			all.Go(func() { r.err = c.verb.apply(ctx, w, r.run) })
		}
		all.Wait()
		for _, r := range portion {
			if r.err == nil || ofOneRun(r.err) || errors.Is(r.err, pawl.ErrConflict) {
				continue
			}
			if done == 0 && !slices.ContainsFunc(portion, func(r *runResult) bool { return r.err == nil || uncertain(r.err) }) {
				c.results = nil // nothing was done, and the error says why
				return r.err
			}
			return nil // each has its error
		}
		done += len(portion)
		tell(int64(done), int64(total))
	}
	return nil
}
