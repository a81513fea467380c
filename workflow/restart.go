package workflow

import (
	"fmt"
	"reflect"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Restart is what a function returns as its error to begin anew with another input and an
// empty journal, for loops without an end. ID and unread signals stay. What it had to undo is
// forgotten, and children that are under way are cancelled. The input is of the flow's type:
// another blocks the run, whose journal stays as it is.
func Restart[In any](r *Run, in In) error {
	if want, got := r.x.flow.input(), reflect.TypeOf(in); got != nil && !got.AssignableTo(want) && !equalBelow(got, want) {
		return r.x.mismatch(&DeterminismError{Want: fmt.Sprintf("an input of the type %v", want), Got: fmt.Sprintf("Restart with the type %v", got),
			Reason: "Restart has to be called with the type of the flow"})
	}
	input, err := encode("the input", in)
	if err != nil {
		return err
	}
	return &restartError{input}
}

// equalBelow reports whether two types are the same but for pointers, which are not stored.
func equalBelow(a, b reflect.Type) bool {
	for a.Kind() == reflect.Pointer {
		a = a.Elem()
	}
	for b.Kind() == reflect.Pointer {
		b = b.Elem()
	}
	return a == b
}

type restartError struct{ input []byte }

func (*restartError) Error() string { return "the run begins anew; return this from its function" }

// restart is the rider that begins a run anew.
type restart struct {
	x     *execution
	input []byte
	open  []pawl.ID

	row      *runRow
	children map[pawl.ID]*runRow
}

func (x *execution) restart(input []byte) error {
	x.mu.Lock()
	r := &restart{x: x, input: input, open: x.openChildren()}
	x.mu.Unlock()
	if err := x.engine.queue.Join(x.writing(), r, len(input)); err != nil {
		return err
	}
	for child := range r.children {
		x.engine.hub.poke(child)
	}
	return nil
}

// Check makes the job ready again.
func (w *restart) Check(p *bolt.Plan) (err error) {
	r := rowsOf(p.Tx())
	if w.row, err = r.mustRun(w.x.run); err != nil {
		return err
	}
	w.row.Restarts++
	w.row.Status, w.row.Build, w.row.Steps, w.row.Bytes = Running, w.x.engine.opts.Build, 0, 0
	w.row.Due, w.row.Waits, w.row.Error = 0, nil, ""
	if w.children, err = w.x.engine.cancelAll(p, r, w.open, "the run that started it began anew"); err != nil {
		return err
	}
	return p.Snooze(w.x.lease, p.Now())
}

// Apply removes the journal.
func (w *restart) Apply(tx *bbolt.Tx) error {
	r := rowsOf(tx)
	if _, err := r.remove(w.x.run, 2*MaxEntries+2, bucketSteps, bucketBlobs); err != nil {
		return err
	}
	if err := r.put(bucketBlobs, seqKey(w.x.run, inputSeq), w.input); err != nil {
		return err
	}
	if err := r.delete(bucketBlocked, w.x.run[:]); err != nil {
		return err
	}
	if err := r.putAll(w.children); err != nil {
		return err
	}
	return r.putRun(w.x.run, w.row)
}
