package workflow

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Send sends a signal to a run and returns when it is durable. The run does not have to wait for it
// yet. It consumes the signals of one name in order of arrival. The payload is MessagePack, see
// [driver.EncodePayload]; the [Codec] of the engine encodes it. [Signal.Send] sends a typed value.
//
// Dedup identifies the signal among all signals to this run, for a sender that may send
// twice. A second signal with the same dedup is not stored, whatever its content, and is not
// an error, even if the run has ended in the meantime. "" means no deduplication. A run
// remembers the IDs of its last [MaxSeen] signals.
//
// Errors: [ErrNotFound]; [ErrNotRunning] for a run that has ended; [ErrUndeclared] if the flow
// declares signals, but not this name, see [Receives]; [ErrTooLarge] for more than [MaxValue]
// bytes; [ErrTooMany] if the run has [MaxSignals] unconsumed signals; and those of a [Store].
func (e *Engine) Send(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error {
	payload, err := e.toStored(payload)
	if err != nil {
		return err
	}
	s := &send{hub: e.hub, run: run, name: name, payload: payload, dedup: dedup}
	if err := CheckSignal(name, payload, dedup); err != nil {
		return err
	}
	return s.refused(e.queue.Mutate(ctx, s, s.size()))
}

// SendTx sends a signal as part of an app's transaction, as [Signal.Send] does: the run receives it
// if the transaction commits. After an error of a [Store], the app must roll the transaction back.
func SendTx[Tx, T any](tx Tx, e *Engine, s *Signal[T], run pawl.ID, value T, key string) error {
	q, err := transactor[Tx](e)
	if err != nil {
		return err
	}
	m, err := s.prepare(e, run, value, key)
	if err != nil {
		return err
	}
	return m.refused(q.MutateTx(tx, m))
}

// CheckSignal returns the error that [Engine.Send] would return for a signal to any run, so
// that a caller can check it beforehand: a [pawl.InvalidError] for a bad name or dedup,
// [ErrTooLarge] for a payload of more than [MaxValue] bytes.
func CheckSignal(name string, payload []byte, dedup string) error {
	if err := validName("signal", name); err != nil {
		return err
	}
	if len(dedup) > MaxID {
		return &pawl.InvalidError{Field: "deduplication ID", Reason: fmt.Sprintf("has %d bytes, at most %d are allowed", len(dedup), MaxID)}
	}
	if len(payload) > MaxValue {
		return fmt.Errorf("signal %q: the payload has %d bytes, at most %d are stored: %w", name, len(payload), MaxValue, ErrTooLarge)
	}
	return nil
}

// send is the mutation that stores a signal.
type send struct {
	hub     *hub
	run     pawl.ID
	name    string
	payload []byte
	dedup   string

	row *runRow // nil if the run already has the signal
	n   uint64  // its number
}

// size returns roughly how many bytes the mutation writes.
func (s *send) size() int { return len(s.payload) + requestBytes }

// refused returns the error of a signal that was not sent.
func (s *send) refused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("send signal %q: %w", s.name, err)
}

// Check checks whether the signal is new, and wakes a run that waits for it.
func (s *send) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	row, err := r.mustRun(s.run)
	if err != nil {
		return err
	}
	s.row = nil
	if s.dedup != "" {
		if known, err := r.get(tableSeen, runAnd(s.run, s.dedup)); known != nil || err != nil {
			s.n, _ = strconv.ParseUint(string(known), 10, 64)
			return err
		}
	}
	switch {
	case !row.open():
		return fmt.Errorf("run %s: %w", s.run, ErrNotRunning)
	case s.undeclared(row) != nil:
		return s.undeclared(row)
	case row.Unread >= MaxSignals:
		return fmt.Errorf("run %s has %d signals that it has not consumed: %w", s.run, row.Unread, ErrTooMany)
	}
	row.Signals++
	row.Unread++
	s.row, s.n = row, row.Signals
	// A blocked run would only be blocked again.
	if row.Paused || row.Status == Blocked || !slices.Contains(row.Waits, s.name) {
		return nil
	}
	state, err := ops.State(s.run)
	if err == nil && state == pawl.Delayed {
		err = ops.RunNow(s.run)
	}
	return err
}

func (s *send) undeclared(row *runRow) error {
	info := Info{Flow: row.Flow, ID: row.ID, Declared: s.hub.declared(row)}
	return info.Accepts(s.name)
}

// Apply stores the signal.
func (s *send) Apply(tx driver.Writer) error {
	if s.row == nil {
		return nil
	}
	hub, run := s.hub, s.run
	tx.OnCommit(func() { hub.signalled(run) })
	r := rowsTo(tx)
	n := s.n
	if err := r.put(tableSignals, signalKey(s.run, s.name, n), s.payload); err != nil {
		return err
	}
	if s.dedup != "" {
		if err := r.put(tableSeen, runAnd(s.run, s.dedup), fmt.Appendf(nil, "%d", n)); err != nil {
			return err
		}
	}
	if n%seenPortion == 0 && n > MaxSeen {
		if err := r.forget(s.run, n-MaxSeen); err != nil {
			return err
		}
	}
	return r.putRun(s.run, s.row)
}

// seenPortion is how many signals arrive between two removals of old deduplication IDs.
const seenPortion = 1_000

// forget removes the deduplication IDs of a run's signals up to a number, and the answers to them.
// If an older build has left many, it removes only some of them.
func (r rows) forget(run pawl.ID, upTo uint64) error {
	var old, answers [][]byte
	err := r.each(tableSeen, run[:], func(key, content []byte, damage error) error {
		if n, err := strconv.ParseUint(string(content), 10, 64); damage == nil && err == nil && n <= upTo {
			old = append(old, bytes.Clone(key))
		}
		if len(old) == 2*seenPortion {
			return errStop
		}
		return nil
	})
	if err == nil {
		err = present(r.Scan(tableAnswers, driver.Span{Prefix: run[:], Limit: 2 * seenPortion}, func(key, _ []byte) bool {
			if number(key) > upTo {
				return false
			}
			answers = append(answers, bytes.Clone(key))
			return true
		}))
	}
	if err != nil {
		return err
	}
	for _, key := range old {
		if err := r.delete(tableSeen, key); err != nil {
			return err
		}
	}
	for _, key := range answers {
		if err := r.delete(tableAnswers, key); err != nil {
			return err
		}
	}
	return nil
}
