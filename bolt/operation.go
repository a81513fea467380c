package bolt

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// operation is one caller's part of a transaction, the only way to change the
// file. It has two halves because bbolt has no savepoints: once an operation has
// written, refusing it would take its neighbours down with it.
//
// Both run on the scheduler's goroutine, check right before apply. When a group
// fails to commit they run again, alone, so they hold no state of an earlier run.
type operation interface {
	// check refuses the operation by an error. It writes nothing.
	check(t *txn) error

	// apply makes the change that check allowed.
	apply(t *txn)
}

// enqueue stores new jobs.
type enqueue struct {
	jobs []newJob
}

// newJob is a job encoded outside the transaction.
type newJob struct {
	*pawl.Envelope
	record  []byte
	payload []byte // sealed, where it lies apart from the record
	fresh   bool   // the ID was made for it, so no other job can have it
	ready   bool   // it was not to wait, whatever the clock says in the transaction
}

func (op *enqueue) check(t *txn) error {
	for _, j := range op.jobs {
		if !j.fresh && t.jobs.Get(j.ID[:]) != nil {
			return fmt.Errorf("job %s: %w: the queue holds a job of this ID already", j.ID, pawl.ErrConflict)
		}
	}
	return nil
}

func (op *enqueue) apply(t *txn) {
	for _, j := range op.jobs {
		t.insert(j)
	}
}

// settle ends a lease by one of the verbs.
type settle struct {
	id    pawl.ID
	token uint64
	how   verb
	row   leaseRow
}

// verb gives a job that was leased its next place, or removes it. The lease has
// ended.
type verb func(t *txn, id pawl.ID, row leaseRow)

func (op *settle) check(t *txn) (err error) {
	op.row, err = t.held(op.id, op.token)
	return err
}

func (op *settle) apply(t *txn) {
	t.endLease(op.id, op.row)
	op.how(t, op.id, op.row)
}

// held checks that the token given is that of the job's lease.
func (t *txn) held(id pawl.ID, token uint64) (leaseRow, error) {
	row, ok, err := t.lease(id)
	switch {
	case err != nil:
		return row, fmt.Errorf("lease of job %s: %w", id, err)
	case !ok || row.token != token:
		return row, fmt.Errorf("job %s: %w", id, pawl.ErrLeaseLost)
	}
	return row, nil
}

func ack(t *txn, id pawl.ID, row leaseRow) { t.remove(id, row.flags) }

// condemn is for a job that turned out to be unreadable.
func condemn(damage error) verb {
	return func(t *txn, id pawl.ID, row leaseRow) { t.buryDamaged(id, row.queue, row.flags, damage) }
}

// move is a verb that needs the job's record: next changes it and gives the job its
// place. A job whose record is damaged goes to the dead letters, whatever the verb.
func move(next func(t *txn, j stored)) verb {
	return func(t *txn, id pawl.ID, row leaseRow) {
		j, err := t.record(id)
		if err != nil {
			t.buryDamaged(id, row.queue, row.flags, err)
			return
		}
		j.Crashes = 0
		next(t, j)
	}
}

func nack(delay time.Duration, cause string) verb {
	return move(func(t *txn, j stored) {
		t.failure(j, cause)
		j.NotBefore = after(t.now, delay)
		t.rewrite(j)
		t.place(j)
	})
}

func abandon(reason pawl.Reason, cause string) verb {
	return move(func(t *txn, j stored) {
		t.failure(j, cause)
		t.bury(j, reason, cause)
	})
}

func release() verb {
	return move(func(t *txn, j stored) {
		t.rewrite(j)
		t.placeReady(j)
	})
}

func snooze(delay time.Duration) verb {
	return move(func(t *txn, j stored) {
		j.NotBefore = after(t.now, delay)
		t.rewrite(j)
		t.place(j)
	})
}

func park() verb {
	return move(func(t *txn, j stored) {
		t.rewrite(j)
		t.park(j)
	})
}

// after is now plus delay, which no time.Duration lets overflow.
func after(now time.Time, delay time.Duration) time.Time {
	return now.Add(max(delay, 0))
}

// extend renews leases. It writes nothing: expiry counts in memory.
type extend struct {
	leases []*pawl.Lease
	lost   []*pawl.Lease
}

func (op *extend) check(*txn) error { return nil }

func (op *extend) apply(t *txn) {
	op.lost = nil
	for _, l := range op.leases {
		if _, err := t.held(l.ID, l.Token); err != nil {
			op.lost = append(op.lost, l)
		} else {
			t.renewed[l.ID] = true
		}
	}
}

// unpark makes parked jobs of one kind ready, at most portion of them.
type unpark struct {
	kind    string
	portion int
	moved   int
}

func (op *unpark) check(*txn) error { return nil }

func (op *unpark) apply(t *txn) {
	op.moved = t.promoteRows(kindPrefix(nil, op.kind), nil, op.portion)
}

// revive takes a dead letter back to ready.
type revive struct {
	id           pawl.ID
	keepAttempts bool
	job          stored
}

func (op *revive) check(t *txn) (err error) {
	if op.job, err = t.record(op.id); err != nil {
		return err
	}
	state, err := t.state(op.job.Envelope)
	if err != nil {
		return err
	}
	if state != pawl.Dead {
		return fmt.Errorf("job %s: %w: it is %s, not dead", op.id, pawl.ErrConflict, state)
	}
	return nil
}

func (op *revive) apply(t *txn) { t.revive(op.job, op.keepAttempts) }

// reap takes back the leases that have expired, at most portion of them.
type reap struct {
	leases  *leaseTable
	portion int
	reaped  int
}

func (op *reap) check(*txn) error { return nil }

func (op *reap) apply(t *txn) { op.reaped = op.leases.reap(t, op.portion) }
