package bolt

import (
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// txn is one write transaction: the buckets, one now, the queues' rows, and what must
// be done in memory once it is durable.
//
// Its methods, here and in moves.go, are the moves between the states. Whoever calls
// them has checked that they apply; they keep a row in exactly one state, and the
// counts right.
type txn struct {
	store
	settings
	now time.Time

	numbers map[string]queueNumber
	rows    map[queueNumber]*queueRow
	touched []queueNumber  // queues that changed
	few     [4]queueNumber // where touched begins

	scratch []byte // for a key
	space   []byte // what is left for values, which bbolt keeps until the commit
	spaces  int    // how large it was

	changed bool
	err     error // the first failed write; the transaction cannot commit after it

	granted   []*grant         // leases that were given
	renewed   map[pawl.ID]bool // leases that were extended
	ended     []holding        // leases that were settled or taken back
	cancelled []holding        // leases whose jobs are to end
	events    []pawl.Event     // deaths and crashes, and all others when somebody listens
	damage    []error          // rows that were passed over
	strays    bool             // jobs were put aside, and damage keeps them from being brought back

	claims map[string]pawl.ID // unique keys that the jobs of a dry run would take; nil in others

	searched   bool   // such jobs were searched for
	unsearched []byte // and from where on they are still to be
}

// holding names one lease of a job.
type holding struct {
	id    pawl.ID
	token uint64
}

// settings is what a transaction must know of the options.
type settings struct {
	maxCrashes int  // 0 means that no number of crashes is too many
	listening  bool // somebody wants to be told of events
}

func begin(tx *bbolt.Tx, now time.Time, o settings) (*txn, error) {
	s, err := openStore(tx)
	if err != nil {
		return nil, err
	}
	t := &txn{
		store: s, settings: o, now: now,
		numbers: make(map[string]queueNumber),
		rows:    make(map[queueNumber]*queueRow),
		renewed: make(map[pawl.ID]bool),
	}
	t.touched = t.few[:0]
	return t, nil
}

// lookups is how often the transaction has searched for a row.
func (t *txn) lookups() (n int) {
	for i := range t.tables {
		n += t.tables[i].seeks
	}
	return n
}

// finish writes what was gathered in memory. No move may follow.
func (t *txn) finish() error {
	if !t.changed {
		return t.err
	}
	for _, n := range t.touched {
		if row := t.rows[n]; row != nil {
			var buf [5]byte
			key := numberKey(buf[:0], n)
			t.put(t.queues, key, seal(key, row.append(nil)))
		}
	}
	return t.err
}

func (t *txn) put(b *table, key, value []byte) {
	t.changed = true
	t.fail(b.Put(key, value))
}

// value returns n bytes of room for a value, of length 0.
func (t *txn) value(n int) []byte {
	if len(t.space) < n {
		t.spaces = min(max(2*t.spaces, leastSpace), mostSpace)
		t.space = make([]byte, max(n, t.spaces))
	}
	v := t.space[:0:n]
	t.space = t.space[n:]
	return v
}

// How much room is made for values at a time, in bytes: more each time.
const (
	leastSpace = 256
	mostSpace  = 8 << 10
)

func (t *txn) delete(b *table, key []byte) {
	t.changed = true
	t.fail(b.Delete(key))
}

func (t *txn) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// numberOf finds the number of a queue, and gives it one on its first job.
func (t *txn) numberOf(name string) queueNumber {
	if n, ok := t.numbers[name]; ok {
		return n
	}
	n, ok, err := t.number(name)
	t.fail(err)
	if !ok {
		next, err := t.queues.NextSequence()
		t.fail(err)
		n = queueNumber(next)
		t.newRow(n, name)
		key := nameKey(nil, name)
		t.put(t.queues, key, seal(key, binary.BigEndian.AppendUint32(nil, uint32(n))))
	}
	t.numbers[name] = n
	return n
}

// newRow makes the row of a queue that has none.
func (t *txn) newRow(n queueNumber, name string) {
	t.rows[n], t.changed = &queueRow{name: name}, true
	t.row(n)
}

// row returns the row of a queue, for a change.
func (t *txn) row(n queueNumber) *queueRow {
	row, err := t.rowOf(n)
	if err != nil {
		t.fail(err)
		row = new(queueRow)
		t.rows[n] = row
	}
	if !row.touched {
		row.touched, t.touched = true, append(t.touched, n)
	}
	row.news = true
	return row
}

// putReady stores a row in ready, under the key given.
func (t *txn) putReady(key []byte, row indexRow) {
	t.put(t.ready, key, seal(key, row.append(t.value(indexWidth+sealWidth))))
	t.row(queueOf(key)).fresh = true
}

// rowOf returns the row of a queue for a caller that does not change it.
func (t *txn) rowOf(n queueNumber) (*queueRow, error) {
	if row, ok := t.rows[n]; ok {
		return row, nil
	}
	row, err := t.queue(n)
	if err == nil {
		t.rows[n] = row
	}
	return row, err
}

// counts are those of one queue, to change.
func (t *txn) counts(n queueNumber) *pawl.Counts { return &t.row(n).counts }

// tell keeps an event for when the transaction is durable. Deaths and crashes are kept
// always, since they are logged.
func (t *txn) tell(e pawl.Event) {
	if t.listening || e.Type == pawl.EventDied || e.Type == pawl.EventReaped || e.Type == pawl.EventRecovered {
		job := *e.Job // as it is now; and the payload may be a page of the file
		job.Payload, e.Job = nil, &job
		t.tellOwn(e)
	}
}

// tellOwn is tell for who listens, of a job that is the event's alone, without its payload.
func (t *txn) tellOwn(e pawl.Event) {
	e.At = t.now
	t.events = append(t.events, e)
}

// damagedRow notes a row that is passed over.
func (t *txn) damagedRow(err error) { t.damage = append(t.damage, err) }
