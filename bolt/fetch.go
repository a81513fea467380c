package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// fetched is a job as it leaves the transaction: copied, not decoded.
type fetched struct {
	id      pawl.ID
	token   uint64
	record  []byte
	payload []byte // what lies apart from the record
}

// choice is a ready row chosen for a fetch.
type choice struct {
	key  []byte
	row  indexRow
	lane lane
}

// allowance is what a fetch may still have of jobs that crashed: as many as there
// are idle slots, and of those that crashed twice or more a single one.
type allowance struct {
	idle   int
	repeat bool
}

func (a allowance) covers(l lane) bool {
	return l == laneCalm || a.idle > 0 && (l == laneSuspect || a.repeat)
}

func (a *allowance) use(l lane) {
	if l != laneCalm {
		a.idle--
	}
	if l == laneRepeat {
		a.repeat = false
	}
}

// turns says whose turn it is among queues: that of the one which was served the
// longest ago, whichever fetches named it.
type turns struct {
	last map[queueNumber]uint64
	now  uint64
}

func (ts *turns) took(n queueNumber) {
	ts.now++
	ts.last[n] = ts.now
}

// pick chooses up to r.Max ready jobs, in order; queues take turns.
func (t *txn) pick(r *pawl.Request, ts *turns, allow allowance) (chosen []choice, err error) {
	var sources []*source
	for _, name := range r.Queues {
		n, ok, err := t.number(name)
		if err != nil {
			return nil, err
		}
		// A queue may be named twice.
		if ok && !slices.ContainsFunc(sources, func(s *source) bool { return s.queue == n }) {
			sources = append(sources, openSource(t, n))
		}
	}
	for len(sources) > 0 && len(chosen) < r.Max {
		next := 0
		for i, s := range sources {
			if ts.last[s.queue] < ts.last[sources[next].queue] {
				next = i
			}
		}
		c, ok := sources[next].take(t, allow)
		if !ok {
			sources = slices.Delete(sources, next, next+1)
			continue
		}
		allow.use(c.lane)
		ts.took(sources[next].queue)
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// source is the ready jobs of one queue: its lanes, merged by their order.
type source struct {
	queue queueNumber
	lanes [lanes]laneCursor
}

type laneCursor struct {
	cursor *bbolt.Cursor
	prefix [lanePrefix]byte
	key    []byte // of the row that is next, nil at the end
	value  []byte
}

func openSource(t *txn, n queueNumber) *source {
	s := &source{queue: n}
	for l := range s.lanes {
		lc := &s.lanes[l]
		lc.cursor = t.ready.Cursor()
		appendLane(lc.prefix[:0], n, lane(l))
		lc.set(lc.cursor.Seek(lc.prefix[:]))
	}
	return s
}

func (lc *laneCursor) set(key, value []byte) {
	if !bytes.HasPrefix(key, lc.prefix[:]) {
		key = nil
	}
	lc.key, lc.value = key, value
}

// take returns the first job of the lanes that are allowed.
func (s *source) take(t *txn, allow allowance) (choice, bool) {
	for {
		best := lanes
		for l := range s.lanes {
			lc := &s.lanes[l]
			if lc.key == nil || !allow.covers(lane(l)) {
				continue
			}
			if best == lanes || bytes.Compare(lc.key[lanePrefix:], s.lanes[best].key[lanePrefix:]) < 0 {
				best = lane(l)
			}
		}
		if best == lanes {
			return choice{}, false
		}
		lc := &s.lanes[best]
		key := lc.key
		row, err := parseIndexRow(key, lc.value)
		lc.set(lc.cursor.Next())
		if err != nil {
			t.damage = append(t.damage, fmt.Errorf("row %x of bucket %s: %w", key, bucketReady, err))
			continue
		}
		return choice{key, row, best}, true
	}
}

// copyOut copies the picked jobs out of the transaction. One whose record is
// damaged goes to the dead letters instead.
func (t *txn) copyOut(chosen []choice) (good []choice, jobs []fetched) {
	good = chosen[:0]
	for _, p := range chosen {
		job, err := t.copyJob(p.row)
		if err != nil {
			t.condemnReady(p, err)
			continue
		}
		good, jobs = append(good, p), append(jobs, job)
	}
	return good, jobs
}

func (t *txn) copyJob(row indexRow) (job fetched, err error) {
	record := t.jobs.Get(row.id[:])
	if record == nil {
		return job, fmt.Errorf("job %s: %w: its record is missing", row.id, pawl.ErrCorrupt)
	}
	if err := pawl.CheckRecord(record); err != nil {
		return job, fmt.Errorf("job %s: %w", row.id, err)
	}
	if row.flags&hasPayload != 0 {
		if job.payload, err = t.payload(row.id); err != nil {
			return job, err
		}
	}
	job.id, job.record = row.id, bytes.Clone(record)
	return job, nil
}

// lend leases the picked jobs.
func (t *txn) lend(chosen []choice, jobs []fetched) {
	for i, p := range chosen {
		jobs[i].token = rand.Uint64()
		t.grantLease(p.key, p.row, jobs[i].token)
		t.granted = append(t.granted, &grant{id: p.row.id, token: jobs[i].token, lane: p.lane})
	}
}
