package bolt

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// txn is one write transaction: its buckets, a single current time, the rows of queues, and the changes to memory
// that follow once the transaction is durable.
//
// The methods here and in moves.go move jobs between states. A caller has checked that the move
// applies. Each method keeps a job's row in exactly one state and keeps the counts right.
type txn struct {
	store
	settings
	now time.Time

	numbers  map[string]queueNumber
	kinds    map[string]kindNumber
	rows     map[queueNumber]*queueRow
	lines    map[line]*lineRow
	last     lastLine
	keyRows  map[string]*keyRow       // rows of keys that are limited; nil until needed
	usedKeys []*keyRow                // the rows among keyRows that the transaction uses
	limitAt  []byte                   // buffer for a limit key
	laneAt   []byte                   // buffer for a limit key and a lane
	encoded  []byte                   // buffer for the row of a key
	behind   []byte                   // buffer for the prefix of blocked jobs
	touched  []line                   // lines that changed
	few      [4]line                  // initial array of touched
	resumed  []queueNumber            // queues that were resumed
	pools    map[string][]queueNumber // the queues of each pool; nil until needed
	resting  []restingQueue           // queues whose rate or rest kept a fetch waiting
	late     []news                   // what to notify fetches of once the transaction is durable

	scratch []byte // buffer for a key
	space   []byte // free memory for values, which bbolt keeps until the commit
	spaces  int    // size of the last block of space

	leasesCounted bool // the transaction has raised the sequence of its keyLeases

	keyless   bool // do not touch the rows of keys, since a repair restores them
	groupless bool // count no members of groups, since a recount follows
	recounts  bool // create missing line rows, since a recount follows
	changed   bool
	err       error // the first failed write; the transaction cannot commit after it

	granted     []*grant        // leases granted
	renewed     map[uint64]bool // leases extended
	ended       []holding       // leases settled or taken back
	cancelled   []holding       // leases of jobs that must end
	cleared     []holding       // leases of jobs whose crashes were forgotten
	counted     driver.Tally    // counts of all transitions; events has only some of them
	events      []pawl.Event    // deaths and crashes, and all other events when there is a listener
	damage      []error         // damaged rows that were skipped
	leftBlocked bool            // damage may keep blocked jobs from being unblocked

	groups driver.Groups // groups whose members moved

	claims map[string]pawl.ID // unique keys that jobs of a dry run would take; nil otherwise

	searched   bool   // the transaction searched for blocked jobs
	unsearched []byte // where that search continues
}

// lastLine is the line that was used last, since most transactions use one. It spares searches in maps.
type lastLine struct {
	queue, kind string // of a job
	named       line   // their line, if kind is set

	line line
	row  *lineRow // of line; nil for none

	of       queueNumber // a queue
	queueRow *queueRow   // of it; nil for none
}

// holding names one lease of a job.
type holding struct {
	id    pawl.ID
	token uint64
}

// settings are the options that a transaction needs.
type settings struct {
	maxCrashes int            // 0 means no limit
	listening  bool           // there is a subscriber for events
	seq        *atomic.Uint64 // the last assigned enqueue sequence; nil if no callback fires
	bound      *bound         // nil for none
	awaits     *atomic.Bool   // false if no job waits for another; nil if that is not known
	keyLeases  *keyLeases     // of the queue; nil outside of one
}

func begin(tx *bbolt.Tx, now time.Time, o settings) (*txn, error) {
	s, err := openStore(tx)
	if err != nil {
		return nil, err
	}
	t := &txn{
		store: s, settings: o, now: now.Round(0), // without the monotonic clock, since the times in the file have none
		numbers: make(map[string]queueNumber),
		kinds:   make(map[string]kindNumber),
		rows:    make(map[queueNumber]*queueRow),
		lines:   make(map[line]*lineRow),
		renewed: make(map[uint64]bool),
	}
	t.touched = t.few[:0]
	return t, nil
}

// lookups returns how many rows the transaction has searched for.
func (t *txn) lookups() (n int) {
	for i := range t.tables {
		n += t.tables[i].seeks
	}
	return n
}

// finish writes what the transaction collected in memory. No move may follow.
func (t *txn) finish() error {
	t.finishEnds()
	if !t.changed {
		return t.err
	}
	t.finishKeys()
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

// value returns a buffer of length 0 and capacity n for a value.
func (t *txn) value(n int) []byte {
	if len(t.space) < n {
		t.spaces = min(max(2*t.spaces, leastSpace), mostSpace)
		t.space = make([]byte, max(n, t.spaces))
	}
	v := t.space[:0:n]
	t.space = t.space[n:]
	return v
}

// Sizes of the blocks of memory for values, in bytes. Each block is larger than the one before.
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

// numberOf returns the number of a queue. It assigns one for the queue's first job.
func (t *txn) numberOf(name string) queueNumber {
	if n, ok := t.numbers[name]; ok {
		return n
	}
	n, ok, err := t.number(name)
	if err == nil && ok {
		_, err = t.rowOf(n) // without its row no fetch could find the queue
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

// kindOf returns the number of a kind. It assigns one for the kind's first job.
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

// nextNumber returns a number that no queue and no kind has.
func (t *txn) nextNumber() uint64 {
	next, err := t.queues.NextSequence()
	t.fail(err)
	return next
}

// nameKind stores the name of a kind and the mappings between name and number.
func (t *txn) nameKind(n kindNumber, name string) {
	key := kindNumberKey(nil, n)
	t.put(t.queues, key, seal(key, []byte(name)))
	t.putNumber(kindNameKey(nil, name), uint32(n))
}

func (t *txn) putNumber(key []byte, n uint32) {
	t.put(t.queues, key, seal(key, binary.BigEndian.AppendUint32(nil, n)))
}

// lineOf returns the line of a job. It creates the line for the first job of the kind on the
// queue.
func (t *txn) lineOf(e *pawl.Envelope) line {
	if l := &t.last; l.kind == e.Kind && l.queue == e.Queue && l.kind != "" {
		return l.named
	}
	ln := line{t.numberOf(e.Queue), t.kindOf(e.Kind)}
	t.last.queue, t.last.kind, t.last.named = e.Queue, e.Kind, ln
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

// newRow creates the row of a queue that has none.
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

// rowOf is like row, for a caller that can continue without the row.
func (t *txn) rowOf(n queueNumber) (*queueRow, error) {
	if t.last.queueRow != nil && t.last.of == n {
		return t.last.queueRow, nil
	}
	row, ok := t.rows[n]
	if !ok {
		var err error
		if row, err = t.queue(n); err != nil {
			return row, err
		}
		t.rows[n] = row
	}
	t.last.of, t.last.queueRow = n, row
	return row, nil
}

// putReady stores a row in ready under key.
func (t *txn) putReady(key []byte, row indexRow) {
	t.put(t.ready, key, seal(key, row.append(t.value(indexWidth+sealWidth))))
	t.touch(lineAt(key)).fresh = true
}

// touch returns the row of a line that has or had a job, so that the caller can change it.
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

// rowOfLine returns the row of a line that has or had a job, for reading only.
func (t *txn) rowOfLine(ln line) (*lineRow, error) {
	if t.last.row != nil && t.last.line == ln {
		return t.last.row, nil
	}
	if row, ok := t.lines[ln]; ok {
		t.last.line, t.last.row = ln, row
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

// countBlocked adds n to the blocked jobs of a line. It does not wake fetches.
func (t *txn) countBlocked(ln line, n int) {
	row, err := t.rowOfLine(ln)
	if err != nil {
		t.fail(err)
		return
	}
	row.counts.Blocked += n
	if !row.touched {
		row.touched, t.touched = true, append(t.touched, ln)
	}
}

// resume lets the fetches that wait for a queue look at it again.
func (t *txn) resume(n queueNumber) {
	if !slices.Contains(t.resumed, n) {
		t.resumed = append(t.resumed, n)
	}
}

// counts returns the counts of one line, for changing.
func (t *txn) counts(ln line) *pawl.Counts { return &t.touch(ln).counts }

// emit counts a transition, and keeps its event until the transaction is durable. It always keeps deaths and crashes,
// since they are logged, and skipped jobs, since a call may begin to wait for them.
func (t *txn) emit(e pawl.Event) {
	t.counted.Count(e.Job.Queue, e.Type, 1)
	if t.listening || e.Type == pawl.EventDied || e.Type == pawl.EventReaped ||
		e.Type == pawl.EventRecovered || e.Type == pawl.EventSkipped {
		job := *e.Job // a copy of its current state; the payload may be a page of the file
		job.Payload, job.Cursor, e.Job = nil, nil, &job
		t.emitOwn(e)
	}
}

// countIn counts a transition of a job of a queue. The name of the queue is unknown if the queue's row is damaged.
func (t *txn) countIn(n queueNumber, e pawl.EventType) {
	name := ""
	if row, err := t.rowOf(n); err == nil {
		name = row.name
	}
	t.counted.Count(name, e, 1)
}

// emitOwn keeps an event that owns its job, which has no payload.
func (t *txn) emitOwn(e pawl.Event) {
	e.At = t.now
	t.events = append(t.events, e)
}

// damagedRow records a skipped damaged row.
func (t *txn) damagedRow(err error) { t.damage = append(t.damage, err) }
