package workflow

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Shared is a value that the branches of one run share. [Share] makes one. The functions passed to its methods run one
// at a time, so no other branch can change the value while a function reads and changes it.
//
// Do not use a Go variable for this: after a crash, the branches would use it in another order. The journal has the
// order of the changes, and not the value. When the run continues from its journal, the functions are called again in
// that order. So they must only compute. They may set variables of the branch that makes the call. These are valid
// once the call has returned nil.
//
// The value is encoded like the result of a [Step], and each function gets a copy of its own.
type Shared[T any] struct{ *shared }

// shared is the part of a Shared that does not depend on its type.
type shared struct {
	x     *execution
	by    *scope // the scope that made it
	name  string
	err   error
	state []byte // MessagePack; x.sharing guards it
}

// Share makes a value for the branches of the run. The name identifies it: the journal has an entry with the initial
// value, so a deploy changes the initial value only for runs that begin later. Share needs no commit. A Restart begins
// with the initial value again.
//
// The first use of the value reports an error: [pawl.ErrInvalid] for a bad name, a [*StepError] that matches
// [ErrTooLarge] for more than [MaxValue] bytes, or an error that says that the run does not continue.
func Share[T any](r *Run, name string, initial T) *Shared[T] {
	s := &shared{x: r.x, by: r.s, name: name}
	s.err = r.s.share(s, func() ([]byte, error) { return r.x.encode("the shared value", initial) },
		func(stored []byte) error { var v T; return r.x.decode(stored, &v) })
	return &Shared[T]{s}
}

// share finds or makes the entry of a shared value.
func (s *scope) share(v *shared, initial func() ([]byte, error), decode func([]byte) error) error {
	c, err := s.begin(KindShare, v.name, nil)
	if err != nil {
		return err
	}
	defer c.end()
	if !c.known {
		if err := c.draw(initial, decode); err != nil {
			return err
		}
	}
	return c.outcome(func(stored []byte) (err error) {
		if err = decode(stored); err == nil {
			v.state, err = s.x.engine.fromStored(stored)
		}
		return err
	})
}

// Change changes the value. It needs no commit of its own: the next write for the run stores the change, and a call
// with an effect outside waits for that write. Calls of Wait whose condition is now true return.
//
// The error is a [*StepError] that matches [ErrTooLarge] if the new value has more than [MaxValue] bytes;
// the value is unchanged then. Any other error means that the run does not continue now, or that
// the value is not one of this run: return it.
func (s *Shared[T]) Change(r *Run, fn func(*T)) error {
	c, err := s.begin(r, KindChange, s.name)
	if err != nil {
		return err
	}
	defer c.end()
	w := c.sharedWait(&sharedCase{on: s.shared, try: s.try(func(v *T) bool { fn(v); return true })})
	if c.known {
		return w.again(0, c.sumOf)
	}
	if err := w.caughtUp(); err != nil {
		return err
	}
	_, err = w.look(nil, nil)
	return w.failed(err)
}

// Wait waits until fn returns true. It calls fn immediately, and then after each change of the value. If several calls
// wait, the call that began first comes first. What fn does to the value counts only if fn returns true. So fn can take
// what it waits for:
//
//	err := slots.Wait(r, "a free slot", func(free *int) bool {
//		if *free == 0 {
//			return false
//		}
//		*free--
//		return true
//	})
//
// The name identifies the call in the journal. While nothing else happens in the run, the run is suspended, and
// [Info].Error says what it waits for. If no branch is left that could change the value, and the run waits for nothing
// else, it is blocked. To wait with a time limit, use a [Select] with [Shared.Case] and [After]. Wait returns the
// errors of [Shared.Change].
func (s *Shared[T]) Wait(r *Run, name string, fn func(*T) bool) error {
	c, err := s.begin(r, KindCondition, name)
	if err != nil {
		return err
	}
	defer c.end()
	w := c.sharedWait(&sharedCase{on: s.shared, try: s.try(fn)})
	if c.known {
		return w.again(0, c.sumOf)
	}
	if err := w.caughtUp(); err != nil {
		return err
	}
	defer w.join()()
	return w.failed(w.await(fmt.Sprintf("waits for %q of the shared value %q", name, s.name)))
}

// Case is ready when fn returns true for the value. If the case is selected, what fn did to the value counts, as
// with [Shared.Wait]. When a [Select] has to look at its cases again, because another one may be ready, it may miss a
// value for which fn would have returned true only until then.
func (s *Shared[T]) Case(fn func(*T) bool) Case {
	return Case{name: sharedCaseName + s.name, err: s.err, shared: &sharedCase{on: s.shared, try: s.try(fn)}}
}

// sharedCaseName begins the name of a case. The name of the value follows.
const sharedCaseName = "shared "

// begin begins a call that may change the value.
func (s *shared) begin(r *Run, kind EntryKind, name string) (*call, error) {
	if s.err != nil {
		return nil, s.err
	}
	if err := s.usableBy(r.s); err != nil {
		return nil, err
	}
	return r.s.begin(kind, name, nil)
}

// usableBy refuses a scope of another run. It also refuses a scope that does not run again together with the scope
// that made the value, as is true of an undo step.
func (s *shared) usableBy(by *scope) error {
	reason := ""
	switch {
	case s.x != by.x:
		reason = "is one of another run; branches of one run share a value, and runs send signals"
	case orderOf(s.by.name) != orderOf(by.name):
		reason = "is used in an undo step that did not make it; each UndoWith shares values of its own"
	default:
		return nil
	}
	return &pawl.InvalidError{Field: "shared value", Reason: fmt.Sprintf("%q %s", s.name, reason)}
}

// attempt returns the next state of a shared value, or nil if the condition does not hold.
type attempt func(state []byte) (next []byte, err error)

// errState is the error of a value that its own function cannot read.
var errState = errors.New("the shared value cannot be read")

func (s *Shared[T]) try(fn func(*T) bool) attempt {
	return func(state []byte) ([]byte, error) {
		var v T
		if err := s.x.flow.decode(state, &v); err != nil {
			return nil, fmt.Errorf("%w: %w", errState, err)
		}
		if !fn(&v) {
			return nil, nil
		}
		next, err := encode("the shared value", v)
		return next, err
	}
}

// sumOf returns the sum, as the journal has it, of the state after a change.
func (c *call) sumOf() ([]byte, error) { return c.x.value(c.e) }

// sum encodes a checksum of a state as the journal has it. Zero fields do not count, so a deploy may add one.
func (x *execution) sum(state []byte) ([]byte, error) {
	return x.encode("the sum of a shared value", fingerprint(state))
}

// sameSum reports whether a stored sum is that of a state.
func (x *execution) sameSum(stored, state []byte) (bool, error) {
	b, err := x.engine.fromStored(stored)
	if err != nil {
		return false, x.codecStops(err)
	}
	var sum []byte
	if err := driver.DecodePayload(b, &sum); err != nil {
		return false, nil
	}
	return bytes.Equal(sum, fingerprint(state)), nil
}
