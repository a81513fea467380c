package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/workflow"
)

// verifyView is the object of `wf verify`.
type verifyView struct {
	Compared bool           `json:"compared"`
	Fit      int            `json:"fit"`
	Unfit    int            `json:"unfit"`
	Runs     []verifiedView `json:"runs"`
}

type verifiedView struct {
	Run    string      `json:"run"`
	Result string      `json:"result"` // fits, readable, differs, no_flow, damaged, ended, not_found or failed
	Error  *string     `json:"error"`
	Want   *admin.Text `json:"want"`
	Got    *admin.Text `json:"got"`
	Seq    *uint32     `json:"seq"`
	Build  *admin.Text `json:"build"`
	Wrote  *admin.Text `json:"wrote"`

	err error
}

func (a *app) wfVerifyCommand() *cobra.Command {
	v := &verification{app: a}
	c := a.command(&spec{
		use: "verify [REF... | - | FILTER...]", short: "compare runs with the code of the app", args: -1, ids: true,
		long: `Asks the app to compare the journal of each open run, or of the named or selected runs,
with its code, and prints the runs that do not match: these would become blocked when
they continue. No step runs and nothing changes. To try a new build before deploying
it, run it with a backup of the file. The exit code is 5 if a run does not match.

Without a running app there is no code to compare with. The command then reads
everything that the runs have; the exit code is 4 if that is readable, and 5 if it is
damaged.

` + refText,
		example: `  jobctl --db jobs.db wf verify
  jobctl --db jobs.db wf verify order:1042
  jobctl --db jobs.db wf verify --flow order -o jsonl`,
		json: `one object with
  compared (false: no app is running, so the runs were only read), fit (how
  many),
  unfit, and
  runs: a list of run, error,
        result (fits, readable (no app is running), differs, no_flow (the app
                does not have it), damaged, ended, not_found, or failed (its
                code panicked)),
        if it differs want (what the journal has), got (what the code
        did), seq (of the entry; 0: there is none), build, wrote (the build
        that wrote it)
With -o jsonl only the objects of runs, one per line; with -o ids the IDs of
those that do not match.
`,
		exits:    []int{exitNoMatch, exitConflict},
		complete: a.completeRefs(anyNumber, openStatuses...),
		run:      v.run,
	})
	v.filter.register(a, c, openStatuses...)
	return c
}

// verification is one `wf verify`.
type verification struct {
	app    *app
	filter runFilter
	view   verifyView
}

func (v *verification) run(ctx context.Context, args []string) error {
	if len(args) > 0 && v.filter.given() {
		return misused("wf verify", "a run and a filter were given; choose one")
	}
	refs, err := v.app.readRefs("wf verify", args)
	if err != nil {
		return err
	}
	v.view.Runs = []verifiedView{}
	err = v.app.with(ctx, func(queue admin.Admin) error {
		isLive, err := live(ctx, queue)
		if err != nil {
			return err
		}
		v.view.Compared = isLive && v.app.flags.server == ""
		return v.all(ctx, queue.Workflows(), refs)
	})
	if err != nil && len(v.view.Runs) == 0 {
		return v.app.runFailure(err)
	}
	if printErr := v.print(); printErr != nil {
		return printErr
	}
	if err != nil {
		return v.app.runFailure(err)
	}
	return v.verdict(len(refs) > 0)
}

// all verifies the named runs, or those that the filter selects.
func (v *verification) all(ctx context.Context, w admin.Workflows, refs []ref) error {
	runs := make([]pawl.ID, 0, len(refs))
	for _, r := range refs {
		run, err := r.find(ctx, w)
		switch {
		case err == nil:
			runs = append(runs, run)
		case ofOne(err):
			v.add(r.text, err)
		default:
			return err
		}
	}
	if len(refs) == 0 {
		for run, err := range admin.WorkflowRuns(ctx, w, v.filter.query()) {
			if err != nil {
				return err
			}
			if err := damagedRun(&run); err != nil {
				v.add(run.Run.String(), err)
			} else if v.filter.fits(&run) {
				runs = append(runs, run.Run)
			}
		}
	}
	bar := v.app.bar("wf verify", "runs")
	defer bar.Stop()
	for i, run := range runs {
		err := w.Verify(ctx, run)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ofTheQueue(err):
			return err
		case len(refs) == 0 && (errors.Is(err, workflow.ErrNotRunning) || errors.Is(err, workflow.ErrNotFound)): // it has ended in the meantime
		default:
			v.add(run.String(), err)
		}
		bar.Set(int64(i+1), int64(len(runs)))
	}
	return nil
}

// ofTheQueue reports whether every run would give this error.
func ofTheQueue(err error) bool {
	return slices.ContainsFunc([]error{admin.ErrUnreachable, admin.ErrDenied, admin.ErrBusy, pawl.ErrClosed, pawl.ErrPoisoned, context.DeadlineExceeded},
		func(target error) bool { return errors.Is(err, target) })
}

// add records the result of one run.
func (v *verification) add(run string, err error) {
	one := verifiedView{Run: run, err: err}
	var differs *workflow.DeterminismError
	switch {
	case err == nil:
		one.Result = "fits"
	case errors.Is(err, admin.ErrNotLive):
		one.Result = "readable"
	case errors.As(err, &differs):
		one.Result = "differs"
		one.Want, one.Got, one.Seq = (*admin.Text)(&differs.Want), (*admin.Text)(&differs.Got), &differs.Seq
		one.Build, one.Wrote = (*admin.Text)(&differs.Build), (*admin.Text)(&differs.Wrote)
	case errors.Is(err, workflow.ErrNoFlow):
		one.Result = "no_flow"
	case errors.Is(err, pawl.ErrCorrupt):
		one.Result = "damaged"
	case errors.Is(err, workflow.ErrNotRunning):
		one.Result = "ended"
	case errors.Is(err, workflow.ErrNotFound):
		one.Result = "not_found"
	default:
		one.Result = "failed"
	}
	switch {
	case one.Result == "fits" || one.Result == "readable":
		v.view.Fit++
	default:
		v.view.Unfit++
		text := err.Error()
		one.Error = &text
	}
	v.view.Runs = append(v.view.Runs, one)
}

func (v *verification) print() error {
	a := v.app
	switch a.flags.output {
	case "json":
		return a.print(v.view)
	case "jsonl":
		for _, one := range v.view.Runs {
			if err := a.print(one); err != nil {
				return err
			}
		}
		return nil
	}
	if !a.people() {
		for _, one := range v.view.Runs {
			if one.Error != nil {
				fmt.Fprintln(a.stdout, plain.Text(one.Run))
			}
		}
		return nil
	}
	v.printUnfit()
	text := "verified %s: %d match, %d do not\n"
	if !v.view.Compared {
		text = "read %s: %d can be read, %d cannot\n"
	}
	fmt.Fprintf(a.stdout, text, plural(len(v.view.Runs), "run"), v.view.Fit, v.view.Unfit)
	return nil
}

// printUnfit prints the runs that do not fit. It shows the first run for each reason and counts
// the rest, unless -v asks for all.
func (v *verification) printUnfit() {
	var all alike
	var shown []*likeness
	var names []string
	for i, one := range v.view.Runs {
		if one.Error == nil {
			continue
		}
		text, _, stack := strings.Cut(*one.Error, "\n\ngoroutine ")
		key := one.Result + " " + dlq.Fingerprint(text)
		if v.app.flags.verbose {
			key, text = fmt.Sprint(i), *one.Error
		} else if stack {
			text += "\n-v shows the stack"
		}
		if g := all.addAs(key, text); g.count == 1 {
			shown, names = append(shown, g), append(names, plain.Text(one.Run)+"  "+one.Result)
		}
	}
	for i, g := range shown {
		fmt.Fprintf(v.app.stdout, "%s\n  %s\n", names[i], escapeLines(g.first, "  "))
		if g.count > 1 {
			fmt.Fprintf(v.app.stdout, "  and %s like it; -v shows each\n", plural(g.count-1, "run"))
		}
	}
}

// verdict returns the exit code. For named runs it is the code of the first run that was not
// verified, but a run that does not fit takes precedence.
func (v *verification) verdict(named bool) error {
	for _, one := range v.view.Runs {
		switch one.Result {
		case "differs", "no_flow", "failed", "damaged":
			return &failure{exitDamaged, plural(v.view.Unfit, "run") + " did not pass", "'jobctl wf show' has the journal of one."}
		}
	}
	for _, one := range v.view.Runs {
		if named && one.Error != nil {
			return v.app.runFailure(one.err)
		}
	}
	if !v.view.Compared {
		return &failure{exitLocked, v.app.by("no app is running, so the runs", "the runs", "the runs") + " were read but not compared with code",
			v.app.by("Start the app, with package admin in it, to compare them with its code.", "", "Name an app that serves package admin with --addr, to compare them with its code.")}
	}
	return nil
}
