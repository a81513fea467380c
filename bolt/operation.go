package bolt

// operation is one caller's part of a transaction, and the only way to change the file. It has
// two halves because bbolt has no savepoints: refusing an operation after it has written would
// fail its neighbors too.
//
// Both halves run on the scheduler's goroutine, check right before apply. If a group fails to
// commit, its operations run again, each alone, so they must not keep state of an earlier run.
// Within an app's transaction they run on the app's goroutine.
type operation interface {
	// check refuses the operation by returning an error. It writes nothing.
	check(t *txn) error

	// apply makes the change that check allowed.
	apply(t *txn)
}

// extend renews leases. It writes nothing, since expiry is kept in memory.
type extend struct {
	leases []holding
	lost   []int // indices of leases that their holder has lost
}

func (op *extend) check(*txn) error { return nil }

func (op *extend) apply(t *txn) {
	op.lost = nil
	for i := range op.leases {
		h := &op.leases[i]
		if _, err := t.held(h); err != nil {
			op.lost = append(op.lost, i)
		} else {
			t.renewed[h.token] = true
		}
	}
}

// reap takes back up to portion expired leases.
type reap struct {
	leases  *leaseTable
	portion int
	reaped  int
}

func (op *reap) check(*txn) error { return nil }

func (op *reap) apply(t *txn) { op.reaped = op.leases.reap(t, op.portion) }
