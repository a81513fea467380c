package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// refText describes the REF of a command in help texts.
const refText = `A REF is the ID of a run, or its flow, a colon, and the ID from its starter:
order:2026/1042.`

// oneRef returns the REF of a command that takes one, which more arguments may follow.
func oneRef(words string, args []string) (ref, error) {
	if len(args) == 0 {
		return ref{}, misused(words, "no run was named; add its ID, or FLOW:ID")
	}
	return parseRef(words, args[0])
}

// ref names a run the way a user does.
type ref struct {
	text string
	run  pawl.ID // zero for FLOW:ID
}

func parseRef(words, text string) (ref, error) {
	run, err := pawl.ParseID(text)
	if err == nil {
		return ref{text, run}, nil
	}
	if flow, id, ok := strings.Cut(text, ":"); !ok || flow == "" || id == "" {
		return ref{}, misused(words, "%q is not a run: name one by its ID, or by FLOW:ID", text)
	}
	return ref{text: text}, nil
}

// find looks up the run. The name of a flow may contain a colon too, so each colon may be the
// separator between flow and ID.
func (r ref) find(ctx context.Context, w admin.Workflows) (pawl.ID, error) {
	if !r.run.IsZero() {
		return r.run, nil
	}
	for at, c := range r.text {
		if c != ':' || at == 0 || at == len(r.text)-1 {
			continue
		}
		run, err := w.Find(ctx, r.text[:at], r.text[at+1:])
		if !errors.Is(err, workflow.ErrNotFound) && !errors.Is(err, pawl.ErrInvalid) {
			return run, err
		}
	}
	return pawl.ID{}, fmt.Errorf("run %s: %w", r.text, workflow.ErrNotFound)
}

// readRefs parses the REFs among the arguments, and those on standard input in place of a "-",
// one per line. A duplicate counts once.
func (a *app) readRefs(words string, args []string) ([]ref, error) {
	return readNames(a, args, bufio.ScanLines, "run", func(text string) (ref, error) { return parseRef(words, text) })
}

// withWorkflows opens the queue while do runs. It explains errors about runs.
func (a *app) withWorkflows(ctx context.Context, do func(admin.Workflows) error) error {
	return a.runFailure(a.with(ctx, func(queue admin.Admin) error { return do(queue.Workflows()) }))
}

// runRemedies are in the order in which they are tried.
var runRemedies = []remedy{
	{is: pawl.ErrUnknownOutcome, code: exitError, next: lookFirst + "\n'jobctl wf show' shows the state of the run."},
	{is: workflow.ErrNotFound, code: exitNoMatch, next: "It was removed after its retention, or it never existed;\n'jobctl wf list' shows the runs."},
	{is: workflow.ErrNotRunning, code: exitConflict, next: "'jobctl wf show' shows how it ended."},
	{is: workflow.ErrUndeclared, code: exitConflict, next: "Check the name of the signal, or declare it in the flow."},
	{is: workflow.ErrConflict, code: exitConflict, next: "Choose another ID for the new run."},
	{is: pawl.ErrConflict, code: exitConflict, next: "'jobctl wf show' has the details."},
	{is: workflow.ErrNoFlow, code: exitDamaged, next: "This build of the app has no such flow: pass it to Engine.Handle."},
}

// runFailure explains an error about a run. It returns other errors unchanged.
func (a *app) runFailure(err error) error {
	if err == nil || errors.As(err, new(*failure)) {
		return err
	}
	for _, r := range runRemedies {
		if errors.Is(err, r.is) {
			return &failure{r.code, err.Error(), r.next}
		}
	}
	if errors.As(err, new(*workflow.DeterminismError)) {
		return &failure{exitDamaged, err.Error(), "Run the build that wrote the journal, or restore the old steps in the code, with\nworkflow.Version for a new variant beside them; 'jobctl wf show' has the journal."}
	}
	return err
}

// damagedRun returns the error of a run with an unreadable row, or nil.
func damagedRun(run *workflow.Info) error {
	if run.Status != "" {
		return nil
	}
	return fmt.Errorf("run %s: %w: %s", run.Run, pawl.ErrCorrupt, run.Error)
}
