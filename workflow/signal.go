package workflow

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Signal ties the name of a signal to the type of what it carries. Make one with
// [DefineSignal], once, usually as a package variable.
type Signal[T any] struct {
	name string
	err  error
}

// DefineSignal makes the signal called name. A bad name is reported by its first use.
func DefineSignal[T any](name string) *Signal[T] {
	return &Signal[T]{name, validName("signal", name)}
}

// Name is the name of the signal.
func (s *Signal[T]) Name() string { return s.name }

func (s *Signal[T]) problem() error { return s.err }

// Send sends the signal to a run, which gets each once, in their order, whether it waits
// already or not. Of those with the same key, unless it is "", the run gets the first alone,
// as long as it is among the last [MaxSeen].
// For errors see [Engine.Send].
func (s *Signal[T]) Send(ctx context.Context, e *Engine, run pawl.ID, value T, key string) error {
	if s.err != nil {
		return s.err
	}
	payload, err := encode("the signal", value)
	if err != nil {
		return err
	}
	return e.Send(ctx, run, s.name, payload, key)
}

// Wait waits for the next signal that no Wait has got yet, for the time given at most, and
// [Forever] for any time. It holds neither a goroutine nor a slot: the run is suspended. After
// the time the error is [ErrTimeout]; a signal that was durable before that counts. With 0
// or less it takes what is there.
func (s *Signal[T]) Wait(r *Run, timeout time.Duration) (T, error) {
	var out T
	if s.err != nil {
		return out, s.err
	}
	if err := r.s.awaitSignal(s.name, timeout, r.decodeInto(&out)); err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

func (s *scope) awaitSignal(name string, timeout time.Duration, decode func([]byte) error) error {
	c, err := s.begin(KindWait, name, nil)
	if err != nil {
		return err
	}
	defer c.end()
	x, e := s.x, c.e
	if c.known {
		return c.outcome(decode)
	}
	if err := x.mayWait(name); err != nil {
		return err
	}
	fresh := !c.recorded
	if fresh && timeout < Forever {
		e.Due = x.after(timeout)
	}
	for passed := false; ; {
		ready := x.lookAgain()
		taken, err := c.takeSignal(passed || timeout <= 0 && fresh)
		if err != nil {
			return err
		}
		if taken {
			return c.outcome(decode)
		}
		if fresh {
			fresh = false
			if err := c.pending(min(timeout, forever)); err != nil {
				return err
			}
		}
		if passed, err = c.idle(idleness{due: timeOf(e.Due), signal: name}, ready); err != nil {
			return err
		}
		if err := c.refused(); err != nil {
			return err
		}
	}
}

// takeSignal ends the call with the next signal, or with ErrTimeout when its time is over;
// it does nothing when neither is so.
func (c *call) takeSignal(over bool) (taken bool, err error) {
	x := c.x
	over = over || c.e.Due != 0 && c.e.Due <= x.engine.now().UnixNano()
	if !over {
		has := false
		err := x.engine.source.ViewRows(x.ctx, func(tx driver.Reader) (err error) {
			has, err = rowsOf(tx).has(tableSignals, signalsOf(x.run, c.e.Name), nil)
			return err
		})
		if err != nil {
			return false, x.stop(err)
		}
		if !has {
			return false, nil
		}
	}
	x.mu.Lock()
	t := &takeSignal{x: x, scope: c.scope, e: c.e, over: over, journal: x.take()}
	x.mu.Unlock()
	err = x.engine.queue.Mutate(x.writing(), t, t.journal.bytes+maxInline)
	switch {
	case err == errNoSignal: // another branch was faster
		return false, nil
	case err == ErrAbandoned: // another branch has won a race
		return false, c.refused()
	case err != nil:
		return false, x.stop(err)
	}
	c.become(&t.ended)
	x.mu.Lock()
	x.bytes += t.ended.weight()
	x.mu.Unlock()
	return true, nil
}

var errNoSignal = errors.New("no signal is there")

// takeSignal is the mutation that gives a signal to the call that waits for it, or the timeout.
type takeSignal struct {
	x       *execution
	scope   *scope
	e       *entry
	over    bool // the time is, so that no signal is a timeout
	journal journal

	row   *runRow
	key   []byte // of the signal, nil when there is none
	ended entry
}

// Check finds the first signal. A branch that has lost a race takes nothing any more: who wrote
// that has looked what it got already.
func (t *takeSignal) Check(ops driver.Ops) (err error) {
	if t.scope.lostRace() {
		return ErrAbandoned
	}
	r := rowsOf(ops)
	if t.row, err = r.mustRun(t.x.run); err != nil {
		return err
	}
	t.key, t.ended = nil, *t.e
	err = r.first(tableSignals, signalsOf(t.x.run, t.e.Name), func(key, content []byte, damage error) error {
		if damage == nil {
			t.key = append([]byte(nil), key...)
			t.ended.finish(append([]byte{}, content...), ops.Now())
			t.ended.Signal = number(key)
		}
		return damage
	})
	if err != nil {
		return err
	}
	if t.key == nil && !t.over {
		return errNoSignal
	}
	if t.key == nil {
		t.ended.fail(ErrTimeout, ops.Now())
	}
	return ops.Hold(t.x.lease)
}

// Apply consumes the signal.
func (t *takeSignal) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := t.journal.apply(r); err != nil {
		return err
	}
	var own journal
	own.add(t.x.run, &t.ended)
	if err := own.apply(r); err != nil {
		return err
	}
	if t.key == nil {
		return nil
	}
	if err := r.delete(tableSignals, t.key); err != nil {
		return err
	}
	t.row.Unread--
	return r.putRun(t.x.run, t.row)
}

// hasSignal reports whether a run has a signal of a name that it has not consumed.
func (r rows) hasSignal(run pawl.ID, name string) (found bool, err error) {
	err = r.first(tableSignals, signalsOf(run, name), func(_, _ []byte, damage error) error {
		found = damage == nil
		return damage
	})
	return found, err
}

// number is that of a signal's key.
func number(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key[len(key)-8:])
}
