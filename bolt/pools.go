package bolt

import (
	"encoding/binary"

	"github.com/gopawl/pawl"
)

// Queues of one pool share a limit on their leases. A pool has no row: the limits of each of its queues have the name
// of the pool and the number of jobs that may run. The jobs that run in the pool are the sum over its queues. A fetch
// skips a queue whose pool is full, as it skips a queue that is at Limits.Running. The end of a lease makes all fetches
// look again that wait for a queue of the pool.

// appendPool writes a pool as a field, unless it is zero.
func appendPool(b []byte, p pawl.Pool) []byte {
	if p.Running == 0 {
		return b
	}
	return appendField(b, queueFieldPool, append(binary.BigEndian.AppendUint32(nil, uint32(p.Running)), p.Name...))
}

// readPool reads a field that appendPool wrote. It reports whether the field is one.
func readPool(l *pawl.Limits, value []byte) (known bool) {
	if len(value) < 4 {
		return false
	}
	l.Pool = pawl.Pool{Name: string(value[4:]), Running: int(binary.BigEndian.Uint32(value))}
	return l.Pool.Running > 0 && pawl.Limits{Pool: l.Pool}.Validate() == nil
}

// queuesOf returns the queues of a pool. The transaction looks for them once.
func (t *txn) queuesOf(pool string) []queueNumber {
	if t.pools != nil {
		return t.pools[pool]
	}
	t.pools = make(map[string][]queueNumber)
	add := func(n queueNumber, row *queueRow) {
		if p := row.limits.Pool; p.Running > 0 {
			t.pools[p.Name] = append(t.pools[p.Name], n)
		}
	}
	eachRow(t.queues, []byte{queueByNumber}, func(k, v []byte) {
		if len(k) != 5 {
			return
		}
		n := queueNumber(binary.BigEndian.Uint32(k[1:]))
		if t.rows[n] != nil {
			return // the transaction may have changed it
		}
		if row, err := parseQueueRow(k, v); err == nil { // a queue with a damaged row has no limits
			add(n, row)
		}
	})
	for n, row := range t.rows {
		add(n, row)
	}
	return t.pools[pool]
}

// resumePool makes the fetches that wait for a queue of a pool look again.
func (t *txn) resumePool(p pawl.Pool) {
	if p.Running == 0 {
		return
	}
	for _, n := range t.queuesOf(p.Name) {
		t.resume(n)
	}
}

// poolCount is how many jobs of a pool are leased, including the jobs that the fetch has chosen.
type poolCount struct{ leased int }

// poolOf counts the leases of a pool, for all sources that share it.
func (s *selection) poolOf(name string) *poolCount {
	if p := s.pools[name]; p != nil {
		return p
	}
	p := new(poolCount)
	for _, n := range s.t.queuesOf(name) {
		p.leased += s.t.running(n)
	}
	for _, job := range s.jobs {
		if s.t.limitsOf(job.line().queue).Pool.Name == name {
			p.leased++
		}
	}
	if s.pools == nil {
		s.pools = make(map[string]*poolCount)
	}
	s.pools[name] = p
	return p
}

// poolFull reports whether the pool of a source leaves it no room.
func (from *source) poolFull() bool { return from.pool != nil && from.pool.leased >= from.share }

// pooled returns how many jobs of a pool are leased.
func (s *store) pooled(p pawl.Pool) (leased int, err error) {
	if p.Running == 0 {
		return 0, nil
	}
	err = s.eachQueue(func(n queueNumber, row *queueRow) error {
		if row.limits.Pool.Name != p.Name {
			return nil
		}
		counts, err := s.countsOf(n)
		leased += counts.Leased
		return err
	})
	return leased, err
}
