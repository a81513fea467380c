package bolt

import (
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A unique key leads to the last job that took it, as long as the file has that job. Whether
// the key blocks another job depends on the state of that job.

// uniqueHolder finds the job that has the unique key of e and blocks e. If the key is free, ok
// is false.
func (t *txn) uniqueHolder(e *pawl.Envelope) (j stored, p place, ok bool, err error) {
	n, known, err := t.number(e.Queue)
	if err != nil || !known {
		return j, p, false, err
	}
	key := uniqueKey(nil, n, e)
	if id, claimed := t.claims[string(key)]; claimed {
		return stored{Envelope: &pawl.Envelope{ID: id}}, place{state: pawl.Ready}, driver.BlockedBy(e, pawl.Ready), nil
	}
	sealed := t.unique.Get(key)
	if sealed == nil {
		return j, p, false, nil
	}
	id, err := unseal(key, sealed, len(pawl.ID{}))
	if err != nil {
		return j, p, false, fmt.Errorf("unique key %q: %w", e.UniqueKey, err)
	}
	if j, err = t.record(pawl.ID(id)); err != nil {
		return j, p, false, nil // the job is gone, or its state is unknown
	}
	if p, err = t.where(j.Envelope); errors.Is(err, pawl.ErrCorrupt) {
		return j, p, false, nil
	}
	switch { // overdue work of the scheduler counts as done
	case overdue(j.Envelope, t.now) && p.state != pawl.Leased && p.state != pawl.Completed:
		p.state = pawl.Dead
	case p.state == pawl.Delayed && !j.NotBefore.After(t.now):
		p.state = pawl.Ready
	}
	return j, p, err == nil && driver.BlockedBy(e, p.state), err
}

// takeUnique gives a job its unique key.
func (t *txn) takeUnique(j stored) {
	if j.UniqueKey != "" {
		key := uniqueKey(nil, t.numberOf(j.Queue), j.Envelope)
		t.put(t.unique, key, seal(key, append([]byte(nil), j.ID[:]...)))
	}
}

// giveUpUnique releases the unique key of a job that is removed, if the job still has it.
func (t *txn) giveUpUnique(j stored) {
	if j.UniqueKey == "" {
		return
	}
	key := uniqueKey(nil, t.numberOf(j.Queue), j.Envelope)
	if id, err := unseal(key, t.unique.Get(key), len(j.ID)); err == nil && pawl.ID(id) == j.ID {
		t.delete(t.unique, key)
	}
}
