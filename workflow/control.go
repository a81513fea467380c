package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// An operator's request is written to the row of the run, and the run's job becomes ready. If a
// worker has the run, the run sees the request immediately. Otherwise it sees the request when
// a worker leases it, even after the file was closed and reopened.
//
// These methods return when the request is durable, not when it has been carried out. They return [ErrNotFound],
// [ErrNotRunning] for a run that has ended, and the errors of a [Store].
//
// The last argument restricts a method to runs that have one of the given statuses in the
// transaction that changes them. For other runs it returns [pawl.ErrNotEligible]. A caller that
// chose the run from a list passes the statuses of its filter.

// noReason is the reason if the caller gave none.
const noReason = "no reason was given"

// Cancel asks a run to end. The current or next call returns [ErrCancelled], the run undoes its
// steps as its function requires, and it ends as [Cancelled]. A run that waits, is paused,
// blocked or dead becomes ready for this, and is cancelled when a worker has its flow. If the
// run was cancelled before, the first reason stays.
func (e *Engine) Cancel(ctx context.Context, run pawl.ID, reason string, only ...Status) error {
	return e.ask(ctx, "cancel", run, only, func(row *runRow) (urge, error) {
		if row.Cancel != "" || row.Terminate != "" {
			return revive, nil
		}
		row.Cancel, row.Paused = reasonOf(reason), false
		return runNow | revive, nil
	})
}

// Terminate ends a run immediately, as [Terminated]: nothing is undone. The context of the current step ends. A parent
// that waits for this run before it undoes its own steps stops waiting. If the function does not return when the
// context ends, the run is terminated when it is leased again. Terminate overrides an earlier [Engine.Cancel], and is
// like Cancel in everything else.
func (e *Engine) Terminate(ctx context.Context, run pawl.ID, reason string, only ...Status) error {
	q := &request{engine: e, run: run, only: only, change: func(row *runRow) (urge, error) {
		if row.Terminate != "" {
			return revive, nil
		}
		row.Terminate, row.Paused = reasonOf(reason), false
		return runNow | revive, nil
	}}
	row, err := e.row(ctx, run)
	if err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	q.parent, q.parentSeq = row.Parent, row.ParentSeq
	return e.join(ctx, "terminate", q)
}

// Pause stops a run before its next call, until Resume. The current call is completed. Signals
// and other events are still stored, and the run sees them later. A paused run stays paused. A
// run that is being cancelled or terminated returns [pawl.ErrConflict].
func (e *Engine) Pause(ctx context.Context, run pawl.ID, only ...Status) error {
	return e.ask(ctx, "pause", run, only, func(row *runRow) (urge, error) {
		if row.Cancel != "" || row.Terminate != "" {
			return 0, fmt.Errorf("run %s: %w: it is being cancelled or terminated", run, pawl.ErrConflict)
		}
		row.Paused = true
		return 0, nil
	})
}

// Resume makes a paused run continue. A blocked run is tried again. A dead run becomes active again,
// even if its job is gone. Failed steps are retried immediately, unless another process works on the
// run or the run is just being suspended. Any other run checks again what it waits for.
func (e *Engine) Resume(ctx context.Context, run pawl.ID, only ...Status) error {
	failed, err := e.failedSteps(ctx, run)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	err = e.join(ctx, "resume", &request{engine: e, run: run, only: only, failed: failed, change: func(row *runRow) (urge, error) {
		row.Paused = false
		return runNow | revive, nil
	}})
	if err == nil {
		e.hub.retryNow(run)
	}
	return err
}

// failedSteps returns the entries of failed steps that wait for a retry. If the journal is
// unreadable, the run itself will report that.
func (e *Engine) failedSteps(ctx context.Context, run pawl.ID) (seqs []uint32, err error) {
	err = e.source.ViewRows(ctx, func(tx driver.Reader) error {
		r := rowsOf(tx)
		row, err := r.run(run)
		if row == nil || err != nil {
			return nil
		}
		entries, _ := r.entries(run, row.Journal)
		for _, each := range entries {
			if each.toRetry() {
				seqs = append(seqs, each.seq)
			}
		}
		return nil
	})
	return seqs, err
}

func reasonOf(reason string) string {
	if reason == "" {
		return noReason
	}
	return ellipsis.Truncate(reason, maxErrorText)
}

// urge says how to change the job so that the run notices a request.
type urge int

const (
	runNow urge = 1 << iota // make a delayed job ready
	revive                  // restore a dead or missing job
)

// ask changes the row of a run that has not ended.
func (e *Engine) ask(ctx context.Context, verb string, run pawl.ID, only []Status, change func(row *runRow) (urge, error)) error {
	return e.join(ctx, verb, &request{engine: e, run: run, only: only, change: change})
}

func (e *Engine) join(ctx context.Context, verb string, q *request) error {
	defer q.held.done()
	if err := e.queue.Mutate(ctx, q, requestBytes); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	e.hub.notify(q.run)
	return nil
}

// requestBytes is roughly the size of a request's writes.
const requestBytes = 1 << 10

// request is the mutation of ask.
type request struct {
	engine *Engine
	run    pawl.ID
	only   []Status // statuses in which the run is changed; none means any
	change func(row *runRow) (urge, error)
	failed []uint32 // entries of steps to retry now, if the run is suspended

	parent    pawl.ID // the run that waits for this run and wakes; zero for none
	parentSeq uint32  // the entry of its call

	row     *runRow
	free    bool // it is no longer blocked
	journal journal
	held    heldEnds
}

// Check reads the row, changes it in memory, and adds the change of the job.
func (q *request) Check(ops driver.Ops) (err error) {
	q.journal = journal{}
	q.held.again()
	if q.row, err = rowsOf(ops).mustRun(q.run); err != nil {
		return err
	}
	if !q.row.open() {
		return fmt.Errorf("run %s: %w", q.run, ErrNotRunning)
	}
	if err := q.eligible(ops); err != nil {
		return err
	}
	before := q.row.Cancel
	wanted, err := q.change(q.row)
	if err != nil {
		return err
	}
	if !q.parent.IsZero() {
		e, parent, err := rowsOf(ops).waitsFor(q.run, q.row)
		if e != nil && err == nil {
			err = wakeParent(ops, q.parent, parent)
		}
		if err != nil {
			return err
		}
	}
	moved, err := q.engine.nudge(ops, q.run, q.row, wanted)
	if q.free = moved && q.row.Status == Blocked; q.free {
		q.row.unblock()
	}
	if err == nil && moved {
		err = q.tryNow(rowsOf(ops))
	}
	if err == nil && q.row.Cancel != before {
		q.held.add(q.engine.hub, ops, q.run)
	}
	return err
}

// eligible refuses a run that has none of the requested statuses. The caller may have listed it
// some time ago.
func (q *request) eligible(ops driver.Ops) error {
	if len(q.only) == 0 {
		return nil
	}
	job, err := ops.Job(q.run)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) && !errors.Is(err, pawl.ErrCorrupt) {
		return err
	}
	status := Dead
	if err == nil && job.State != pawl.Dead && job.State != pawl.Completed {
		status = q.row.openInfo(q.run, job).Status
	}
	if !slices.Contains(q.only, status) {
		return fmt.Errorf("run %s: %w: it is %s now", q.run, pawl.ErrNotEligible, status)
	}
	return nil
}

// tryNow ends the waits of the failed steps.
func (q *request) tryNow(r rows) error {
	q.journal = journal{}
	for _, seq := range q.failed {
		e, err := r.entry(q.run, seq)
		if err != nil {
			return err
		}
		if e != nil && e.toRetry() {
			e.Due = 0
			q.journal.add(q.run, e)
		}
	}
	return nil
}

// nudge makes the job of a run ready, as urge permits, and reports whether it did.
func (e *Engine) nudge(ops driver.Ops, run pawl.ID, row *runRow, u urge) (moved bool, err error) {
	if u == 0 {
		return false, nil
	}
	state, err := ops.State(run)
	switch {
	case err != nil:
		return false, err
	case u&runNow != 0 && state == pawl.Delayed:
		return true, ops.RunNow(run)
	case u&revive != 0 && state == pawl.Dead:
		return true, ops.Retry(run)
	case u&revive != 0 && state == "":
		job, err := e.anew(run, row)
		if err != nil {
			return false, err
		}
		_, err = ops.Enqueue(job)
		return true, err
	}
	return false, nil
}

// Apply writes the row.
func (q *request) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if q.free {
		if err := r.delete(tableBlocked, q.run[:]); err != nil {
			return err
		}
	}
	if err := q.held.apply(r); err != nil {
		return err
	}
	if err := q.journal.apply(r); err != nil {
		return err
	}
	return r.putRun(q.run, q.row)
}

// unblock makes a blocked run try again.
func (row *runRow) unblock() { row.Status, row.Error = Running, "" }

// portion limits how many runs one mutation changes.
const portion = 100

// unblock makes the runs of flows that another build blocked try again. Paused and dead runs
// wait for [Engine.Resume]. It skips an unreadable run.
func (e *Engine) unblock(ctx context.Context, flows []Definition) error {
	names := make(map[string]bool)
	for _, f := range flows {
		names[f.Name()] = true
	}
	for w := (walk{table: tableBlocked}); !w.end; {
		u := &unblock{build: e.opts.Build, flows: names}
		_, err := w.step(ctx, e.source, func(_ rows, key, _ []byte, _ error) bool {
			if len(key) == len(pawl.ID{}) {
				u.runs = append(u.runs, pawl.ID(key))
			}
			return len(u.runs) < portion
		})
		if err != nil {
			return err
		}
		if len(u.runs) == 0 {
			continue
		}
		if err := e.queue.Mutate(ctx, u, len(u.runs)*requestBytes); err != nil {
			return err
		}
		for _, err := range u.passed {
			e.opts.Logger.Warn("a blocked run is passed over", "error", err)
		}
	}
	return nil
}

// unblock is the mutation that makes blocked runs ready.
type unblock struct {
	build string
	flows map[string]bool
	runs  []pawl.ID // runs with a row in table blocked

	rows   map[pawl.ID]*runRow // rows of the runs to try again
	stale  []pawl.ID           // runs that have ended or were removed
	passed []error
}

// Check chooses the runs and makes their jobs ready.
func (u *unblock) Check(ops driver.Ops) error {
	u.rows, u.stale, u.passed = make(map[pawl.ID]*runRow), nil, nil
	r := rowsOf(ops)
	for _, run := range u.runs {
		if err := u.choose(ops, r, run); err != nil {
			u.passed = append(u.passed, fmt.Errorf("run %s: %w", run, err))
		}
	}
	return nil
}

func (u *unblock) choose(ops driver.Ops, r rows, run pawl.ID) error {
	build, err := r.get(tableBlocked, run[:])
	if err == nil && (build == nil || string(build) == u.build) {
		return nil // a damaged row is tried too: at worst the run is blocked again
	}
	row, err := r.run(run)
	switch {
	case err != nil:
		return err
	case row == nil || !row.open():
		u.stale = append(u.stale, run)
		return nil
	case !u.flows[row.Flow] || row.Paused:
		return nil
	}
	state, err := ops.State(run)
	switch {
	case err != nil:
		return err
	case state == "" || state == pawl.Dead:
		return nil
	case state == pawl.Delayed:
		if err := ops.RunNow(run); err != nil {
			return err
		}
	}
	if row.Status == Blocked {
		row.unblock()
	}
	u.rows[run] = row
	return nil
}

// Apply writes the rows.
func (u *unblock) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	for run, row := range u.rows {
		if err := r.putRun(run, row); err != nil {
			return err
		}
		if err := r.delete(tableBlocked, run[:]); err != nil {
			return err
		}
	}
	for _, run := range u.stale {
		if err := r.delete(tableBlocked, run[:]); err != nil {
			return err
		}
	}
	return nil
}
