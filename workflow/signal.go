package workflow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Signal ties the name of a signal to the type of its payload. Make one with [DefineSignal],
// once, usually as a package variable.
type Signal[T any] struct {
	name string
	err  error
}

// DefineSignal makes the signal called name. The first use of the signal reports a bad name.
func DefineSignal[T any](name string) *Signal[T] {
	return &Signal[T]{name, validName("signal", name)}
}

// Name returns the name of the signal.
func (s *Signal[T]) Name() string { return s.name }

func (s *Signal[T]) problem() error { return s.err }

// Send sends the signal to a run. The run receives each signal once and in order, whether it
// already waits or not. If several signals have the same key, the run receives only the first, as
// long as the first is among its last [MaxSeen] signals. "" means no key. For errors see
// [Engine.Send].
func (s *Signal[T]) Send(ctx context.Context, e *Engine, run pawl.ID, value T, key string) error {
	m, err := s.prepare(e, run, value, key)
	if err != nil {
		return err
	}
	return m.refused(e.queue.Mutate(ctx, m, m.size()))
}

// prepare does the work that needs no transaction.
func (s *Signal[T]) prepare(e *Engine, run pawl.ID, value T, key string) (*send, error) {
	if s.err != nil {
		return nil, s.err
	}
	payload, err := e.encode("the signal", value)
	if err != nil {
		return nil, err
	}
	return &send{hub: e.hub, run: run, name: s.name, payload: payload, dedup: key}, CheckSignal(s.name, payload, key)
}

// Wait waits for the next unread signal, for at most the timeout. [Forever] sets no limit. It holds
// no slot of a worker: the run is suspended. After the timeout it returns [ErrTimeout], unless a
// signal was durable by then. With 0 or less it only takes a signal that has already arrived.
func (s *Signal[T]) Wait(r *Run, timeout time.Duration) (T, error) {
	var out T
	if s.err != nil {
		return out, s.err
	}
	if _, err := r.s.awaitSignal(s.name, timeout, nil, r.decodeInto(&out)); err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

// awaitSignal is Signal.Wait, and also returns the number of the signal.
func (s *scope) awaitSignal(name string, timeout time.Duration, valid validator, decode func([]byte) error) (n uint64, err error) {
	c, err := s.begin(KindWait, name, nil)
	if err != nil {
		return 0, err
	}
	defer c.end()
	x, e := s.x, c.e
	if c.known {
		return e.Signal, c.outcome(decode)
	}
	if err := x.mayWait(name); err != nil {
		return 0, err
	}
	unsaved := c.limit(timeout)
	for passed, woken := false, false; ; woken = true {
		ready := x.lookAgain()
		taken, err := c.takeSignal(&takeSignal{signals: []string{name}, valid: []validator{valid}, ready: -1, timer: -1, woken: woken, over: passed || timeout <= 0 && !c.recorded})
		if err != nil {
			return 0, err
		}
		if taken {
			return e.Signal, c.outcome(decode)
		}
		if unsaved {
			unsaved = false
			if err := c.pending(min(timeout, forever)); err != nil {
				return 0, err
			}
		}
		if passed, err = c.idle(waitCondition{due: timeOf(e.Due), signals: []string{name}}, ready); err != nil {
			return 0, err
		}
		if err := c.refused(); err != nil {
			return 0, err
		}
	}
}

// limit sets when a call that waits at most d ends, and reports whether the journal does not have that yet. The time
// counts from the start of the call, even if a deploy added the limit while the call waited. If a deploy has
// removed the limit, the call waits without one.
func (c *call) limit(d time.Duration) (unsaved bool) {
	e, before := c.e, c.e.Due
	switch {
	case d >= Forever:
		e.Due = 0
	case e.Due == 0:
		e.Due = unixNano(timeOf(e.Started).Add(max(d, 0)))
	}
	return !c.recorded || e.Due != before
}

// takeSignal ends the call with the first thing that is ready: a signal, a case without a signal,
// or the end of its time. If nothing is ready, it does nothing.
func (c *call) takeSignal(t *takeSignal) (taken bool, err error) {
	x := c.x
	t.x, t.scope, t.e = x, c.scope, c.e
	t.over = !t.early && (t.over || c.e.Due != 0 && c.e.Due <= x.engine.now().UnixNano())
	switch validates := slices.ContainsFunc(t.valid, func(v validator) bool { return v != nil }); {
	case validates:
		found, err := c.findValid(t)
		if err != nil || !found && !t.over {
			return false, err
		}
	case !t.over && !t.woken && t.ready < 0:
		has := false
		err := x.engine.source.ViewRows(x.ctx, func(tx driver.Reader) (err error) {
			for _, name := range t.names() {
				if has, err = rowsOf(tx).has(tableSignals, signalsOf(x.run, name), nil); has || err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, x.stop(err)
		}
		if !has {
			return false, nil
		}
	}
	x.mu.Lock()
	t.journal = x.take()
	x.mu.Unlock()
	err = x.mutate(x.writing(), t, t.journal.bytes+maxInline)
	switch {
	case err == errNoSignal: // another branch was faster
		return false, nil
	case err == errUnchecked:
		return c.takeSignal(t)
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

var (
	errNoSignal  = errors.New("no signal is there")
	errUnchecked = errors.New("another signal is first now")
)

// takeSignal is the mutation that gives a call what it waits for: a signal, or the end of its
// time. A [Select] has other cases too.
type takeSignal struct {
	signals []string    // by case; "" for a case without a signal
	valid   []validator // by case; nil for none
	checked []byte      // key of the first signal, if its validator accepts it
	ready   int         // the case without a signal that is ready; -1 for none
	timer   int         // the case that is ready when the time is over; -1 for ErrTimeout
	over    bool        // the time is over
	early   bool        // take a signal or nothing, even when the time is over
	woken   bool        // something has arrived since the call began, most likely a signal, so do not look for one first

	// result encodes the result of the call; nil for the payload itself.
	result func(selected int, payload []byte) ([]byte, error)

	x       *execution
	scope   *scope
	e       *entry
	journal journal

	row   *runRow
	key   []byte // key of the signal; nil if there is none
	ended entry
}

// validator returns the validator of a case, or nil if it has none.
func (t *takeSignal) validator(selected int) validator {
	if len(t.valid) == 0 {
		return nil
	}
	return t.valid[selected]
}

// names returns the signals that the call waits for.
func (t *takeSignal) names() []string {
	return slices.DeleteFunc(slices.Clone(t.signals), func(name string) bool { return name == "" })
}

// Check finds the first case that is ready. A branch that has lost a race takes nothing: the
// mutation that decided the race has already looked at what it received.
func (t *takeSignal) Check(ops driver.Ops) (err error) {
	if t.scope.lostRace() {
		return ErrAbandoned
	}
	r := rowsOf(ops)
	if t.row, err = r.mustRun(t.x.run); err != nil {
		return err
	}
	t.key, t.ended = nil, *t.e
	selected, payload, err := t.choose(r)
	switch {
	case err != nil:
		return err
	case selected < 0 && !t.over:
		return errNoSignal
	case selected < 0 && t.timer < 0:
		t.ended.fail(ErrTimeout, ops.Now())
		return ops.Hold(t.x.lease)
	case selected < 0:
		selected = t.timer
	}
	if t.key != nil && t.validator(selected) != nil && !bytes.Equal(t.key, t.checked) {
		return errUnchecked
	}
	if t.result != nil {
		if payload, err = t.result(selected, payload); err != nil {
			return err
		}
	}
	t.ended.finish(payload, ops.Now())
	if t.key != nil {
		t.ended.Signal = number(t.key)
	}
	return ops.Hold(t.x.lease)
}

// choose returns the first case that is ready, and the payload of its signal. It returns -1 if
// none is.
func (t *takeSignal) choose(r rows) (selected int, payload []byte, err error) {
	for i, name := range t.signals {
		if name == "" {
			if i == t.ready {
				return i, nil, nil
			}
			continue
		}
		err := r.first(tableSignals, signalsOf(t.x.run, name), func(key, content []byte, damage error) error {
			if damage == nil {
				t.key, payload = bytes.Clone(key), append([]byte{}, content...)
			}
			return damage
		})
		if t.key != nil || err != nil {
			return i, payload, err
		}
	}
	return -1, nil, nil
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

// hasSignal reports whether a run has an unconsumed signal with a name.
func (r rows) hasSignal(run pawl.ID, name string) (found bool, err error) {
	err = r.first(tableSignals, signalsOf(run, name), func(_, _ []byte, damage error) error {
		found = damage == nil
		return damage
	})
	return found, err
}

// number returns the number in a signal's key.
func number(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key[len(key)-8:])
}
