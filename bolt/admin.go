package bolt

import "time"

// pause stops or resumes fetching from a queue. The end of a pause ends the rest of the queue, too.
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
	row := t.row(n)
	if ends := !op.paused && !row.rests.IsZero(); row.paused != op.paused || ends {
		if ends {
			row.rests = time.Time{}
		}
		row.paused, row.touched, t.changed = op.paused, true, true
		t.resume(n)
	}
}
