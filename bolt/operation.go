package bolt

// operation is one caller's part of a transaction, the only way to change the
// file. It has two halves because bbolt has no savepoints: once an operation has
// written, refusing it would take its neighbours down with it.
//
// Both run on the scheduler's goroutine, check right before apply. When a group
// fails to commit they run again, alone, so they hold no state of an earlier run.
// Within a transaction of the app's they run on the app's goroutine.
type operation interface {
	// check refuses the operation by an error. It writes nothing.
	check(t *txn) error

	// apply makes the change that check allowed.
	apply(t *txn)
}

// extend renews leases. It writes nothing: expiry counts in memory.
type extend struct {
	leases []holding
	lost   []int // indices of those that are not the holder's any more
}

func (op *extend) check(*txn) error { return nil }

func (op *extend) apply(t *txn) {
	op.lost = nil
	for i := range op.leases {
		h := &op.leases[i]
		if _, err := t.held(h); err != nil {
			op.lost = append(op.lost, i)
		} else {
			t.renewed[h.id] = true
		}
	}
}

// reap takes back the leases that have expired, at most portion of them.
type reap struct {
	leases  *leaseTable
	portion int
	reaped  int
}

func (op *reap) check(*txn) error { return nil }

func (op *reap) apply(t *txn) { op.reaped = op.leases.reap(t, op.portion) }
