package bolt

// pause stops or resumes fetching from a queue.
type pause struct {
	queue  string
	paused bool
}

func (op *pause) check(*txn) error { return nil }

func (op *pause) apply(t *txn) {
	if _, known, err := t.number(op.queue); !known && !op.paused {
		t.fail(err)
		return
	}
	n := t.numberOf(op.queue)
	if row := t.row(n); row.paused != op.paused {
		row.paused, row.touched, t.changed = op.paused, true, true
		t.resume(n)
	}
}
