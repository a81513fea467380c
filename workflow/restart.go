package workflow

import (
	"fmt"
	"reflect"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Restart returns an error that the function returns to start over with a new input and an empty
// journal. Use it for endless loops. The ID and unread signals stay. The undo steps are forgotten,
// and active children are cancelled. The input must have the flow's type, or be a pointer to it, or
// a plain value that the type can hold, such as 0 for an int64. Any other input blocks the run, and
// its journal is unchanged.
func Restart[In any](r *Run, in In) error {
	want, given := r.x.flow.input(), any(in)
	if got := reflect.TypeOf(given); got != nil && !got.AssignableTo(want) && !equalBelow(got, want) {
		plain, ok := plainAs(reflect.ValueOf(given), want)
		if !ok {
			return r.x.mismatch(&DeterminismError{Want: fmt.Sprintf("an input of the type %v", want), Got: fmt.Sprintf("Restart with the type %v", got),
				Reason: "Restart has to be called with the type of the flow"})
		}
		given = plain.Interface()
	}
	input, err := r.x.encode("the input", given)
	if err != nil {
		return err
	}
	return &restartError{input}
}

// equalBelow reports whether two types are equal apart from pointers, which are not stored.
func equalBelow(a, b reflect.Type) bool {
	for a.Kind() == reflect.Pointer {
		a = a.Elem()
	}
	for b.Kind() == reflect.Pointer {
		b = b.Elem()
	}
	return a == b
}

// plainAs converts a boolean, a number or a text to another type of the same sort, if that can
// hold it.
func plainAs(v reflect.Value, want reflect.Type) (reflect.Value, bool) {
	if sort := sortOf(v.Type()); sort == "" || sort != sortOf(want) {
		return v, false
	}
	as := v.Convert(want)
	return as, as.Convert(v.Type()).Equal(v) && (!v.CanInt() || !as.CanUint() || v.Int() >= 0) && (!v.CanUint() || !as.CanInt() || as.Int() >= 0)
}

func sortOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case k >= reflect.Int && k <= reflect.Uintptr:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "float"
	case k == reflect.Bool || k == reflect.String:
		return k.String()
	}
	return ""
}

type restartError struct{ input []byte }

func (*restartError) Error() string { return "the run begins anew; return this from its function" }

// childOfRestarted is the reason for cancelling a child whose parent has restarted.
const childOfRestarted = "the run that started it began anew"

// restart is the mutation that starts a run over.
type restart struct {
	x     *execution
	input []byte
	open  []pawl.ID

	row      *runRow
	children cancelled
}

func (x *execution) restart(input []byte) error {
	open, err := x.lastChildren(childOfRestarted)
	if err != nil {
		return err
	}
	r := &restart{x: x, input: input, open: open}
	err = x.mutate(x.writing(), r, len(input))
	r.children.done(x.engine.hub, err)
	return err
}

// Check makes the job ready again.
func (w *restart) Check(ops driver.Ops) (err error) {
	r := rowsOf(ops)
	if w.row, err = r.mustRun(w.x.run); err != nil {
		return err
	}
	w.row.Restarts++
	w.row.Journal = w.row.spare() // that journal is empty: the run removed its rows before it continued
	w.row.Status, w.row.Build, w.row.Steps, w.row.Bytes = Running, w.x.engine.opts.Build, 0, 0
	w.row.Due, w.row.Waits, w.row.Error, w.row.Declared = 0, nil, "", w.x.declared()
	if err := w.children.ask(w.x.engine, ops, w.open, childOfRestarted); err != nil {
		return err
	}
	return ops.Snooze(w.x.lease, ops.Now())
}

// Apply writes the new input. The run removes the old journal before it continues, see
// clearSpare.
func (w *restart) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := w.putInput(r); err != nil {
		return err
	}
	if err := r.delete(tableBlocked, w.x.run[:]); err != nil {
		return err
	}
	if err := w.children.apply(r); err != nil {
		return err
	}
	return r.putRun(w.x.run, w.row)
}

// putInput replaces the input, which may move to the row of the run or out of it.
func (w *restart) putInput(r rows) error {
	key, apart := seqKey(w.x.run, inputSeq), w.row.Input == nil
	if !fitsRow(w.input) {
		w.row.Input = nil
		return r.put(tableBlobs, key, w.input)
	}
	if w.row.Input = w.input; apart {
		return r.delete(tableBlobs, key)
	}
	return nil
}
