package bolt

import (
	"encoding/binary"
	"fmt"
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
	kinds   map[string]kindNumber
	rows    map[queueNumber]*queueRow
	lines   map[line]*lineRow
	touched []line        // lines that changed
	few     [4]line       // where touched begins
	resumed []queueNumber // queues that are paused no longer
	late    []news        // what fetches are told once the transaction is durable

	scratch []byte // for a key
	space   []byte // what is left for values, which bbolt keeps until the commit
	spaces  int    // how large it was

	recounts bool // lines that have no row get one, since all is counted anew in the end
	changed  bool
	err      error // the first failed write; the transaction cannot commit after it

	granted   []*grant         // leases that were given
	renewed   map[pawl.ID]bool // leases that were extended
	ended     []holding        // leases that were settled or taken back
	cancelled []holding        // leases whose jobs are to end
	events    []pawl.Event     // deaths and crashes, and all others when somebody listens
	damage    []error          // rows that were passed over
	strays    bool             // jobs were put aside, and damage keeps them from being brought back

	foreign *tables // rows of other packages, nil until somebody asks for them

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
		kinds:   make(map[string]kindNumber),
		rows:    make(map[queueNumber]*queueRow),
		lines:   make(map[line]*lineRow),
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
	var buf [1 + lineWidth]byte
	for n, row := range t.rows {
		if row.touched {
			key := numberKey(buf[:0], n)
			t.put(t.queues, key, seal(key, row.append(nil)))
		}
	}
	for _, ln := range t.touched {
		key := lineKey(buf[:0], ln)
		t.put(t.queues, key, seal(key, t.lines[ln].append(nil)))
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
	if err == nil && ok {
		_, err = t.rowOf(n) // nobody could fetch from it without
	}
	t.fail(err)
	if !ok {
		n = queueNumber(t.nextNumber())
		t.newRow(n, name)
		t.putNumber(nameKey(nil, name), uint32(n))
	}
	t.numbers[name] = n
	return n
}

// kindOf finds the number of a kind, and gives it one on its first job.
func (t *txn) kindOf(name string) kindNumber {
	if n, ok := t.kinds[name]; ok {
		return n
	}
	n, ok, err := t.kind(name)
	t.fail(err)
	if !ok {
		n = kindNumber(t.nextNumber())
		t.nameKind(n, name)
	}
	t.kinds[name] = n
	return n
}

// nextNumber is a number that no queue and no kind has.
func (t *txn) nextNumber() uint64 {
	next, err := t.queues.NextSequence()
	t.fail(err)
	return next
}

// nameKind stores the name of a kind that has a number, and leads from the one to the other.
func (t *txn) nameKind(n kindNumber, name string) {
	key := kindNumberKey(nil, n)
	t.put(t.queues, key, seal(key, []byte(name)))
	t.putNumber(kindNameKey(nil, name), uint32(n))
}

func (t *txn) putNumber(key []byte, n uint32) {
	t.put(t.queues, key, seal(key, binary.BigEndian.AppendUint32(nil, n)))
}

// lineOf finds the line of a job, and makes it for the first job of its kind on its queue.
func (t *txn) lineOf(e *pawl.Envelope) line {
	ln := line{t.numberOf(e.Queue), t.kindOf(e.Kind)}
	if t.lines[ln] == nil {
		row, ok, err := t.lineRow(ln)
		if err == nil && !ok {
			row = new(lineRow)
		}
		if err == nil {
			t.lines[ln] = row
		}
	}
	return ln
}

// newRow makes the row of a queue that has none.
func (t *txn) newRow(n queueNumber, name string) {
	t.rows[n], t.changed = &queueRow{name: name, touched: true}, true
}

// row returns the row of a queue.
func (t *txn) row(n queueNumber) *queueRow {
	row, err := t.rowOf(n)
	if err != nil {
		t.fail(err)
		row = new(queueRow)
		t.rows[n] = row
	}
	return row
}

// rowOf is row for a caller that can do without it.
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

// putReady stores a row in ready, under the key given.
func (t *txn) putReady(key []byte, row indexRow) {
	t.put(t.ready, key, seal(key, row.append(t.value(indexWidth+sealWidth))))
	t.touch(lineAt(key)).fresh = true
}

// touch returns the row of a line that has or had a job, for a change.
func (t *txn) touch(ln line) *lineRow {
	row, err := t.rowOfLine(ln)
	if err != nil {
		t.fail(err)
		row = new(lineRow)
		t.lines[ln] = row
	}
	if !row.touched {
		row.touched, t.touched = true, append(t.touched, ln)
	}
	row.news = true
	return row
}

// rowOfLine returns the row of a line that has or had a job, for a caller that does not
// change it.
func (t *txn) rowOfLine(ln line) (*lineRow, error) {
	if row, ok := t.lines[ln]; ok {
		return row, nil
	}
	row, ok, err := t.lineRow(ln)
	if err == nil && !ok && t.recounts {
		row, ok = new(lineRow), true
	}
	if err == nil && !ok {
		err = fmt.Errorf("%w: kind %d of queue %d has no row", pawl.ErrCorrupt, ln.kind, ln.queue)
	}
	if err == nil {
		t.lines[ln] = row
	}
	return row, err
}

// counts are those of one line, to change.
func (t *txn) counts(ln line) *pawl.Counts { return &t.touch(ln).counts }

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
