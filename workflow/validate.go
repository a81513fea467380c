package workflow

import (
	"fmt"

	"github.com/gopawl/pawl/driver"
)

// A run validates the first request of an update before it takes the request. This happens outside
// of a transaction, since code of the app decides whether the request is valid. A valid request is
// taken by the same mutation as a signal. An invalid request is answered and removed by a separate
// mutation, which writes no entry. The validating function runs in the goroutine that waits, so no
// other code changes what it reads.

// validator returns why a request is not valid. It is nil for a signal, which is always valid.
type validator func(decode func([]byte, any) error, payload []byte) error

// validator returns a validator that also rejects requests of another type.
func (u *Update[Req, Ans]) validator(valid func(Req) error) validator {
	return func(decode func([]byte, any) error, payload []byte) error {
		var req Req
		if err := decode(payload, &req); err != nil || valid == nil {
			return err
		}
		return valid(req)
	}
}

// findValid rejects requests until the first unread one is valid, and reports whether a case is
// ready. The mutation then takes no other request.
func (c *call) findValid(t *takeSignal) (found bool, err error) {
	x := c.x
	for {
		var selected int
		var payload []byte
		t.key = nil
		err := x.engine.source.ViewRows(x.ctx, func(tx driver.Reader) (err error) {
			selected, payload, err = t.choose(rowsOf(tx))
			return err
		})
		if err != nil {
			return false, x.stop(err)
		}
		if t.checked = t.key; t.key == nil || t.validator(selected) == nil {
			return selected >= 0, nil
		}
		if payload, err = x.engine.fromStored(payload); err != nil {
			return false, x.codecStops(err)
		}
		problem := t.validator(selected)(x.flow.decode, payload)
		if problem == nil {
			return true, nil
		}
		if err := c.reject(t, selected, fmt.Errorf("%w: %w", ErrRejected, problem)); err != nil {
			return false, err
		}
	}
}

// reject is the mutation that answers a request which is not valid, and removes it.
type reject struct {
	checkpoint // the reason may depend on the backlog
	answerRequest
	scope *scope
	key   []byte // of the signal

	row *runRow // nil if another branch has taken it
}

func (c *call) reject(t *takeSignal, selected int, problem error) error {
	x := c.x
	x.mu.Lock()
	m := &reject{checkpoint: checkpoint{x.lease, x.take()}, scope: c.scope, key: t.key, answerRequest: answerRequest{hub: x.engine.hub, run: x.run,
		name: t.signals[selected], n: number(t.key), answer: answer{Failed: true, Error: textOf(problem), Chain: chainOf(problem)}}}
	x.mu.Unlock()
	switch err := x.mutate(x.writing(), m, m.journal.bytes+requestBytes); err {
	case nil:
		return nil
	case ErrAbandoned: // another branch has won a race
		return c.refused()
	default:
		return x.stop(err)
	}
}

// Declare declares the run and the request.
func (m *reject) Declare(n *driver.Needs) {
	m.checkpoint.Declare(n)
	n.Read(tableSignals, m.key)
}

// Check finds the request. A branch that has lost a race rejects nothing.
func (m *reject) Check(ops driver.Ops) (err error) {
	if m.scope.lostRace() {
		return ErrAbandoned
	}
	r := rowsOf(ops)
	m.row = nil
	if there, err := r.get(tableSignals, m.key); there == nil || err != nil {
		return err
	}
	if m.row, err = r.mustRun(m.run); err != nil {
		return err
	}
	return m.checkpoint.Check(ops)
}

// Apply answers the request and removes it.
func (m *reject) Apply(tx driver.Writer) error {
	if m.row == nil {
		return nil
	}
	r := rowsTo(tx)
	if err := m.checkpoint.Apply(tx); err != nil {
		return err
	}
	if err := m.answerRequest.Apply(tx); err != nil {
		return err
	}
	if err := r.delete(tableSignals, m.key); err != nil {
		return err
	}
	m.row.Unread--
	return r.putRun(m.run, m.row)
}
