package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// checkLimits checks the limits that options declare.
func checkLimits(all map[string]pawl.Limits) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := driver.CheckQueue(name); err != nil {
			return err
		}
		if err := all[name].Validate(); err != nil {
			return fmt.Errorf("limits of queue %q: %w", name, err)
		}
	}
	return nil
}

// declareLimits stores the limits of queues, in one transaction. It runs before the scheduler.
func (s *scheduler) declareLimits(all map[string]pawl.Limits) error {
	if len(all) == 0 {
		return nil
	}
	defer s.keyRows.forget() // its rows have the old limits
	err := s.transact(func(t *txn) error {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.declare(t.numberOf(name), all[name])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("declare the limits of queues: %w", err)
	}
	return nil
}

// declare stores the limits that a program declares for a queue. Limits that an operator has set stay in force.
func (t *txn) declare(n queueNumber, limits pawl.Limits) {
	row := t.row(n)
	if row.declared == nil {
		t.setLimits(n, limits)
		return
	}
	if *row.declared != limits {
		row.declared, row.touched, t.changed = &limits, true, true
		t.setLimits(n, driver.Override(limits, row.limits))
	}
}

// setLimits changes the limits in force of a queue. If the limits per key change, it recounts the jobs of each key.
func (t *txn) setLimits(n queueNumber, limits pawl.Limits) {
	row := t.row(n)
	if row.limits == limits {
		return
	}
	before := row.limits
	row.limits, row.touched, t.changed = limits, true, true
	if before.Pool != limits.Pool {
		t.pools = nil
		t.resumePool(before.Pool)
		t.resumePool(limits.Pool)
	}
	if before.InOrder != limits.InOrder {
		t.reorderKeys(n, limits.InOrder)
	}
	if before.InOrder != limits.InOrder || before.RunningPerKey != limits.RunningPerKey ||
		before.RatePerKey != limits.RatePerKey || before.Fair != limits.Fair ||
		(before.MaxWaitingPerKey > 0) != (limits.MaxWaitingPerKey > 0) {
		t.recountKeys(n)
	}
}

// recountKeys recounts the jobs of each key of a queue, and unblocks those that have room. It reads the record of each
// waiting job with a key, so use it only for new limits and after damage.
func (t *txn) recountKeys(n queueNumber) {
	t.changed = true
	t.recountLeases()
	prefix := binary.BigEndian.AppendUint32(nil, uint32(n))
	rows := t.clearKeys(prefix)
	blocked := append([]byte{waitsForLimit}, prefix...)
	if !t.limitsOf(n).PerKey() { // or the row of the queue is lost
		t.promoteRows(blocked, nil, math.MaxInt)
		t.promoteRows(append([]byte{waitsForTurn}, prefix...), nil, math.MaxInt)
		return
	}
	defer t.recountBacklog(n)
	t.restoreFronts(n)
	if t.limitsOf(n).InOrder != pawl.OrderNone {
		t.recountOrder(n)
		return
	}
	of := func(id pawl.ID, name string) *keyRow {
		j, err := t.record(id)
		if err == nil {
			name = j.Key
		}
		if name == "" {
			return nil // a later step makes it dead
		}
		key := limitKey(nil, n, name)
		if rows[string(key)] == nil {
			rows[string(key)] = t.addKey(key, new(keyRow))
		}
		if err == nil {
			rows[string(key)].restoreTag(j.Envelope)
		}
		return rows[string(key)]
	}
	eachRow(t.ready, prefix, func(k, v []byte) {
		if row, err := parseIndexRow(k, v); err == nil && len(k) == readyKeyWidth && row.flags&hasKey != 0 {
			if r := of(row.id, ""); r != nil {
				r.lane(k).enter(k)
			}
		}
	})
	eachRow(t.delayed, blocked, func(k, v []byte) {
		if row, err := parseDelayedRow(k, v); err == nil {
			if r := of(row.id, ""); r != nil {
				l := r.lane(row.ready)
				l.block(orderOf(row.ready), l.last[:])
			}
		}
	})
	t.eachKeyedLease(func(id pawl.ID, row leaseRow) {
		if row.line.queue == n {
			of(id, row.key).addLease(row)
		}
	})
	for _, r := range rows {
		t.refill(r)
	}
}

// keyNameOf returns the key of a job as its record has it, or "" if the job has none or is damaged.
func (t *txn) keyNameOf(id pawl.ID) string {
	j, err := t.record(id)
	if err != nil {
		return ""
	}
	return j.Key
}

// clearKeys returns the rows of the keys of a queue, with all counts of jobs set to 0. They keep their times. The rate
// of a damaged row counts as used up.
func (t *txn) clearKeys(prefix []byte) map[string]*keyRow {
	for _, key := range keysWith(t.keys, prefix) {
		if t.usedKey(key) != nil {
			continue
		}
		sealed := t.keys.Get(key)
		r, err := parseKeyRow(key, sealed)
		if err != nil {
			r, sealed = new(keyRow), make([]byte, sealWidth) // differs from any sound row
		}
		r.stored = bytes.Clone(sealed[:len(sealed)-sealWidth])
		if t.expiry.Get(restKey(nil, r.wake, key)) == nil {
			r.wake = time.Time{} // damage
		}
		if t.addKey(key, r); err != nil {
			r.tat = r.pace.Last(t.now)
		}
	}
	rows := make(map[string]*keyRow)
	for _, r := range t.usedKeys { // a fetch may use them already
		if bytes.HasPrefix(r.key, prefix) {
			r.leased, r.lanes, r.head, r.waiting, r.backlog, rows[string(r.key)] = 0, nil, nil, 0, 0, r
			t.limit(r)
		}
	}
	return rows
}

// eachRow calls fn for the rows of a table whose keys have a prefix. Fn must not change rows. eachRow ends where keys
// do not ascend: in a damaged file, pages can form a cycle.
func eachRow(b *table, prefix []byte, fn func(k, v []byte)) {
	c := b.Cursor()
	var last []byte
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && (last == nil || bytes.Compare(k, last) > 0); k, v = c.Next() {
		last = k
		fn(k, v)
	}
}

func keysWith(b *table, prefix []byte) (keys [][]byte) {
	eachRow(b, prefix, func(k, _ []byte) { keys = append(keys, bytes.Clone(k)) })
	return keys
}
