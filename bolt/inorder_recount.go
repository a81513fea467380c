package bolt

import (
	"bytes"
	"encoding/binary"

	"github.com/gopawl/pawl"
)

// keyedJob is a job with a key, where a scan found it.
type keyedJob struct {
	stored
	place
	ready []byte // its key in ready; nil unless it is ready
}

// eachKeyed calls fn for the jobs of a queue that have a key and are not completed. It reads their records, so
// use it only for new limits and after damage. It skips damaged jobs, which a later step makes dead.
func (t *txn) eachKeyed(n queueNumber, fn func(j keyedJob)) {
	prefix := binary.BigEndian.AppendUint32(nil, uint32(n))
	visit := func(id pawl.ID, f flags, p place, ready []byte) {
		if f&hasKey == 0 || p.line.queue != n {
			return
		}
		if j, err := t.record(id); err == nil && j.Key != "" {
			fn(keyedJob{j, p, ready})
		}
	}
	eachRow(t.ready, prefix, func(k, v []byte) {
		if row, err := parseIndexRow(k, v); err == nil && len(k) == readyKeyWidth {
			visit(row.id, row.flags, place{pawl.Ready, t.ready, bytes.Clone(k), lineAt(k)}, bytes.Clone(k))
		}
	})
	eachRow(t.delayed, nil, func(k, v []byte) {
		row, err := parseDelayedRow(k, v)
		switch {
		case err != nil:
		case k[0] == waitsForTime:
			visit(row.id, row.flags, place{pawl.Delayed, t.delayed, bytes.Clone(k), row.line()}, nil)
		case k[0] == waitsForJobs: // it counts for its key once it no longer waits
		default:
			visit(row.id, row.flags, place{pawl.Ready, t.delayed, bytes.Clone(k), row.line()}, bytes.Clone(row.ready))
		}
	})
	eachRow(t.leased, nil, func(k, v []byte) {
		if row, err := parseLeaseRow(k, v); err == nil {
			visit(pawl.ID(k), row.flags, place{pawl.Leased, t.leased, bytes.Clone(k), row.line}, nil)
		}
	})
	eachRow(t.failed, prefix, func(k, v []byte) {
		if row, err := parseEndedRow(k, v); err == nil {
			visit(row.id, row.flags, place{pawl.Dead, t.failed, bytes.Clone(k), row.line}, nil)
		}
	})
}

// recountOrder restores the heads of the keys of a queue from the jobs, and makes the other ready jobs wait for
// their turn. If the records of several jobs say that they hold a key, as when pages of two files are mixed, one
// job keeps it: the leased one, or else the first. The caller has emptied the rows of the keys in the
// transaction.
func (t *txn) recountOrder(n queueNumber) {
	order := t.limitsOf(n).InOrder
	ready := make(map[*keyRow][]keyedJob) // those that do not wait for their turn
	held := make(map[line]int)
	heads := make(map[*keyRow]keyedJob)
	var others []keyedJob // jobs whose records must no longer say that they hold their key
	of := func(key string) *keyRow {
		at := limitKey(nil, n, key)
		if r := t.usedKey(at); r != nil {
			return r
		}
		return t.addKey(at, new(keyRow))
	}
	t.eachKeyed(n, func(j keyedJob) {
		if j.state == pawl.Dead && !j.HoldsKey {
			return
		}
		r := of(j.Key)
		if first := heads[r]; j.state == pawl.Leased && r.head != nil && first.state != pawl.Leased {
			first.HoldsKey, r.head = false, nil
			others = append(others, first)
		}
		if j.HoldsKey && (r.head != nil || j.state == pawl.Dead && order != pawl.OrderHold) {
			j.HoldsKey = false
			others = append(others, j)
		}
		if r.head == nil && (j.HoldsKey || j.state == pawl.Leased) {
			r.head, heads[r] = &keyHead{id: j.ID, holds: j.HoldsKey, turn: turnOf(j.Envelope)}, j
		}
		if j.state == pawl.Dead {
			if !j.HoldsKey {
				return
			}
			held[j.line]++
		}
		r.restoreTag(j.Envelope)
		switch {
		case j.state != pawl.Ready:
		case j.key[0] == waitsForTurn && j.table == t.delayed:
			r.waiting++
		default:
			ready[r] = append(ready[r], j)
		}
	})
	for _, j := range others {
		t.rewrite(&j.stored)
	}
	t.recountHeld(n, held)
	t.eachKeyedLease(func(_ pawl.ID, row leaseRow) { // including leases of jobs with a damaged record
		if row.line.queue == n {
			of(row.key).addLease(row)
		}
	})
	for _, r := range t.usedKeys {
		if queueOf(r.key) == n && !isOwn(r.key) {
			t.restoreOrder(r, ready[r])
		}
	}
}

// recountHeld corrects how many dead jobs of each line of a queue hold their key.
func (t *txn) recountHeld(n queueNumber, held map[line]int) {
	t.fail(t.eachLine(n, func(ln line, _ *lineRow) error {
		if row, err := t.rowOfLine(ln); err == nil && row.counts.Held != held[ln] {
			t.counts(ln).Held = held[ln]
		}
		return nil
	}))
}

// restoreOrder gives a key the head that a scan found, or its first ready job. All other ready jobs
// wait for their turn.
func (t *txn) restoreOrder(r *keyRow, ready []keyedJob) {
	for _, j := range ready {
		switch isHead := r.head != nil && r.head.id == j.ID; {
		case isHead && j.table == t.ready:
			r.lane(j.ready).enter(j.ready)
		case isHead && j.key[0] == waitsForLimit:
			r.lane(j.ready).blocked = true
		case !isHead:
			t.delete(j.table, j.key)
			if j.table == t.delayed {
				t.countBlocked(j.line, -1)
			}
			t.putTurn(r, turnOf(j.Envelope), delayedRow{indexRow{j.ID, j.flags()}, j.ready})
		}
	}
	if r.head != nil {
		t.restoreHead(r)
	}
	t.refill(r)
}

// restoreHead handles a head that holds its key and that damage has left among the jobs that wait for their
// turn: it moves the head to its lane.
func (t *txn) restoreHead(r *keyRow) {
	j, at, err := t.find(r.head.id)
	if err != nil {
		return // a later step makes it dead
	}
	if at.state == pawl.Ready && at.table == t.delayed && at.key[0] == waitsForTurn {
		t.delete(at.table, at.key)
		r.waiting--
		t.countBlocked(at.line, -1)
		t.enterLane(r, readyKey(nil, at.line, j.Envelope), indexRow{j.ID, j.flags()})
	}
}

// reorderKeys prepares the jobs of a queue for another order. After it, no job holds a key that it cannot hold
// in that order, and no job waits for a turn or for a limit.
func (t *txn) reorderKeys(n queueNumber, order pawl.KeyOrder) {
	var jobs []keyedJob
	t.eachKeyed(n, func(j keyedJob) { jobs = append(jobs, j) })
	for _, j := range jobs {
		if j.HoldsKey && (order == pawl.OrderNone || j.state == pawl.Dead && order != pawl.OrderHold) {
			j.HoldsKey = false
			t.rewrite(&j.stored)
			if j.state == pawl.Dead {
				t.counts(j.line).Held--
			}
		}
		if j.table == t.delayed && (j.key[0] == waitsForLimit || j.key[0] == waitsForTurn) {
			t.delete(j.table, j.key)
			t.countBlocked(j.line, -1)
			t.putReady(j.ready, indexRow{j.ID, j.flags()})
		}
	}
}
