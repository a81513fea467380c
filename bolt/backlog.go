package bolt

import (
	"encoding/binary"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A queue may bound how many of its jobs wait, in total or per key. Its lines count the waiting jobs of the
// queue. If it has a bound per key, the row of a key also counts the waiting jobs of the key: those in its
// lanes, delayed jobs, and jobs that wait for an effect or for other jobs. A job counts as long as it has a
// row in ready or delayed.
//
// Only Enqueue and EnqueueTx are refused. A refused call writes nothing, not even the row of a key.

// anyBounded reports whether one of the queues of new jobs has a bound.
func (t *txn) anyBounded(jobs []newJob) bool {
	for i := range jobs {
		if _, l := t.boundsOf(jobs[i].Queue); l.MaxWaiting > 0 || l.MaxWaitingPerKey > 0 {
			return true
		}
	}
	return false
}

// admitBacklog refuses new jobs that would exceed a bound on waiting jobs.
func (t *txn) admitBacklog(jobs []newJob) error {
	if !t.anyBounded(jobs) {
		return nil
	}
	b := driver.NewBacklog(func(queue string) pawl.Limits {
		_, l := t.boundsOf(queue)
		return l
	})
	for i := range jobs {
		j := &jobs[i]
		if j.existing || j.dropped {
			continue
		}
		if driver.IsWaiting(j.state(t.now)) {
			b.Add(&j.Envelope, 1)
		}
		if !j.replaces {
			continue
		}
		if old, at, err := t.find(j.ID); err == nil && driver.IsWaiting(at.state) {
			b.Add(old.Envelope, -1)
		}
	}
	return b.Check(func(queue, key string) int {
		n, _ := t.boundsOf(queue)
		if key != "" {
			return t.backlogOf(n, key)
		}
		return t.waiting(n)
	})
}

// boundsOf returns the number and the limits of a queue. The limits of a queue that does not exist are zero.
func (t *txn) boundsOf(name string) (queueNumber, pawl.Limits) {
	n, ok := t.numbers[name]
	if !ok {
		var err error
		if n, ok, err = t.number(name); !ok || err != nil {
			return 0, pawl.Limits{}
		}
		if _, err := t.rowOf(n); err != nil {
			return 0, pawl.Limits{} // the enqueue fails
		}
		t.numbers[name] = n
	}
	return n, *t.limitsOf(n)
}

// waiting returns how many jobs of a queue wait. If the counts of a line are damaged, the result omits that
// line and all later ones.
func (t *txn) waiting(n queueNumber) (waiting int) {
	add := func(row *lineRow) { waiting += row.counts.Ready + row.counts.Delayed }
	for ln, row := range t.lines {
		if ln.queue == n {
			add(row)
		}
	}
	if err := t.eachLine(n, func(ln line, row *lineRow) error {
		if t.lines[ln] == nil {
			add(row)
		}
		return nil
	}); err != nil {
		t.damagedRow(err)
	}
	return waiting
}

// backlogOf returns how many jobs of a key wait. It writes nothing. If the row of the key is damaged, it
// returns 0: the next job of the key that is stored or moved has the row recounted.
func (t *txn) backlogOf(n queueNumber, key string) int {
	t.limitAt = limitKey(t.limitAt[:0], n, key)
	if r := t.keyRows[string(t.limitAt)]; r != nil {
		return r.backlog
	}
	sealed := t.keys.Get(t.limitAt)
	if sealed == nil {
		return 0
	}
	r, err := parseKeyRow(t.limitAt, sealed)
	if err != nil {
		return 0
	}
	return r.backlog
}

// joinBacklog counts a job that is about to get a row in ready or delayed.
func (t *txn) joinBacklog(n queueNumber, e *pawl.Envelope) {
	if e.Key == "" || t.limitsOf(n).MaxWaitingPerKey == 0 {
		return
	}
	if r, _ := t.keyOf(n, e.Key); r != nil {
		r.backlog++
	}
}

// leaveBacklog stops counting a job that has left ready and delayed.
func (r *keyRow) leaveBacklog() { r.backlog = max(0, r.backlog-1) }

// recountBacklog recounts the waiting jobs of each key of a queue. The caller has set the counts in the
// transaction to 0.
func (t *txn) recountBacklog(n queueNumber) {
	if t.limitsOf(n).MaxWaitingPerKey == 0 {
		return
	}
	count := func(row indexRow) {
		if row.flags&hasKey == 0 {
			return
		}
		key := t.keyNameOf(row.id)
		if key == "" {
			return // a later step makes it dead
		}
		at := limitKey(nil, n, key)
		r := t.usedKey(at)
		if r == nil {
			r = t.addKey(at, new(keyRow))
		}
		r.backlog++
	}
	eachRow(t.ready, binary.BigEndian.AppendUint32(nil, uint32(n)), func(k, v []byte) {
		if row, err := parseIndexRow(k, v); err == nil && len(k) == readyKeyWidth {
			count(row)
		}
	})
	eachRow(t.delayed, nil, func(k, v []byte) {
		if row, err := parseDelayedRow(k, v); err == nil && row.line().queue == n {
			count(row.indexRow)
		}
	})
}
