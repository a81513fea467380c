package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
)

// results is what became of the jobs of one `dead retry`, in the order given.
type results []result

type result struct {
	id  pawl.ID
	err error // nil: retried, or still to be retried
}

// possible are those with no reason against them yet.
func (rs results) possible() []*result {
	var todo []*result
	for i := range rs {
		if rs[i].err == nil {
			todo = append(todo, &rs[i])
		}
	}
	return todo
}

// heldBack is the error of a dead letter that stays dead, although it can be retried by
// its state: another job has its unique key, or its deadline has passed.
type heldBack struct{ error }

func (h heldBack) Unwrap() error { return h.error }

// failed are those to complain about. Among all that matched a job that changed in
// the meantime is none: somebody else was faster.
func (rs results) failed(all bool) []result {
	var failed []result
	for _, r := range rs {
		word := outcome(r.err)
		moved := word == "not_found" || word == "not_dead"
		if r.err != nil && !(all && moved) {
			failed = append(failed, r)
		}
	}
	return failed
}

// report prints what was done and returns what was not.
func (rs results) report(a *app, all bool) error {
	if err := rs.print(a); err != nil {
		return err
	}
	failed := rs.failed(all)
	if len(failed) == 0 {
		return nil
	}
	first := a.failure(failed[0].err)
	if len(failed) == 1 {
		return first
	}
	var lines []string
	for i, r := range failed {
		if i == shownDamage {
			lines = append(lines, fmt.Sprintf("and %d more", len(failed)-i))
			break
		}
		lines = append(lines, r.err.Error())
	}
	return &failure{first.code, fmt.Sprintf("%d of %d jobs could not be retried:", len(failed), len(rs)), strings.Join(lines, "\n")}
}

func (rs results) print(a *app) error {
	v := retryView{Jobs: []resultView{}}
	for _, r := range rs {
		job := resultView{ID: r.id.String(), Result: outcome(r.err)}
		if r.err != nil {
			v.Skipped++
			text := r.err.Error()
			job.Error = &text
		} else {
			v.Retried++
		}
		v.Jobs = append(v.Jobs, job)
	}
	switch {
	case len(rs) == 0: // the file could not be opened
		return nil
	case a.flags.output == "json":
		return a.print(v)
	case a.flags.output == "jsonl":
		for _, job := range v.Jobs {
			if err := a.print(job); err != nil {
				return err
			}
		}
	case v.Retried > 0 || len(rs) > 1:
		fmt.Fprintf(a.stdout, "retried %d, skipped %d\n", v.Retried, v.Skipped)
	}
	return nil
}

// outcome is the word of an error in JSON.
func outcome(err error) string {
	switch {
	case err == nil:
		return "retried"
	case errors.Is(err, pawl.ErrNotFound):
		return "not_found"
	case errors.As(err, new(heldBack)):
		return "conflict"
	case errors.Is(err, pawl.ErrConflict):
		return "not_dead"
	case errors.Is(err, pawl.ErrCorrupt):
		return "damaged"
	}
	return "failed"
}
