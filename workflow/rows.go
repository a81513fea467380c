package workflow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The tables of docs/internals/format.md.
var (
	space          = driver.NewSpace("pawl.workflow")
	tableRuns      = space.Table("runs")
	tableIDs       = space.Table("ids")
	tableSteps     = space.Table("steps")
	tableBlobs     = space.Table("blobs")
	tableSignals   = space.Table("signals")
	tableSeen      = space.Table("seen")
	tableAnswers   = space.Table("answers")
	tablePublished = space.Table("published")
	tableStreams   = space.Table("streams")
	tableItems     = space.Table("items")
	tableBlocked   = space.Table("blocked")
	tablePlaces    = space.Table("places")
	tableEnded     = space.Index("ended")
	tableFound     = space.Index("attributes")
)

// Keys of a run's input and output among its blobs. Entries are numbered from 1.
const (
	inputSeq  = 0
	outputSeq = math.MaxUint32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rows are the rows of workflows in one transaction. A table that a damaged file lost reads as
// empty and cannot be written.
type rows struct {
	driver.Reader
	w driver.Writer // nil in a read transaction
}

func rowsOf(r driver.Reader) rows { return rows{Reader: r} }

func rowsTo(w driver.Writer) rows { return rows{w, w} }

// get returns the content of a row, or nil if there is none.
func (r rows) get(t *driver.Table, key []byte) ([]byte, error) {
	value, err := r.Get(t, key)
	if value == nil || err != nil {
		return nil, present(err)
	}
	return driver.Unseal(t, key, value)
}

// present ignores a missing table, for reads.
func present(err error) error {
	if errors.Is(err, driver.ErrNoTable) {
		return nil
	}
	return err
}

func (r rows) put(t *driver.Table, key, content []byte) error {
	return r.w.Put(t, key, driver.Seal(t, key, content))
}

func (r rows) delete(t *driver.Table, key []byte) error { return r.w.Delete(t, key) }

// each calls fn for the rows whose keys have the prefix, in order, until fn returns an error,
// and returns that error. An unreadable row comes with an error. [errStop] ends the iteration
// early.
func (r rows) each(t *driver.Table, prefix []byte, fn func(key, content []byte, damage error) error) error {
	return r.span(t, driver.Span{Prefix: prefix}, fn)
}

func (r rows) span(t *driver.Table, s driver.Span, fn func(key, content []byte, damage error) error) (err error) {
	failed := r.Scan(t, s, func(key, value []byte) bool {
		content, damage := driver.Unseal(t, key, value)
		err = fn(key, content, damage)
		return err == nil
	})
	if err == nil || err == errStop {
		return present(failed)
	}
	return err
}

// first is like each, for only the first row.
func (r rows) first(t *driver.Table, prefix []byte, fn func(key, content []byte, damage error) error) error {
	return r.span(t, driver.Span{Prefix: prefix, Limit: 1}, fn)
}

var errStop = errors.New("enough rows")

// has reports whether a span has a row, whatever its content.
func (r rows) has(t *driver.Table, prefix, from []byte) (found bool, err error) {
	err = present(r.Scan(t, driver.Span{Prefix: prefix, From: from, Limit: 1}, func(_, _ []byte) bool {
		found = true
		return false
	}))
	return found, err
}

// Keys.

func seqKey(run pawl.ID, seq uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 20), run[:]...), seq)
}

func idKey(flow, id string) []byte {
	return append(append(append(make([]byte, 0, len(flow)+1+len(id)), flow...), 0), id...)
}

// signalsOf returns the prefix of the keys of all signals of one name to a run.
func signalsOf(run pawl.ID, name string) []byte {
	return append(append(append(make([]byte, 0, 16+len(name)+1+8), run[:]...), name...), 0)
}

func signalKey(run pawl.ID, name string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(signalsOf(run, name), n)
}

// runAnd returns a key of a run in seen or published.
func runAnd(run pawl.ID, name string) []byte {
	return append(append(make([]byte, 0, 16+len(name)), run[:]...), name...)
}

// endedKey sorts by the removal time of the run.
func endedKey(until time.Time, run pawl.ID) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(until.UnixNano())^1<<63)
	return append(b, run[:]...)
}

func parseEndedKey(key []byte) (until time.Time, run pawl.ID, err error) {
	if len(key) != 24 {
		return time.Time{}, run, fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tableEnded)
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(key)^1<<63)), pawl.ID(key[8:]), nil
}

// runRow is the row of one run.
type runRow struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Flow   string
	ID     string
	Status Status
	Build  string // the build that ran it last
	Queue  string // queue of its job

	Created int64 // nanoseconds since 1970, as all times here; 0 for none
	Ended   int64
	Retain  int64 // retention after its end, in nanoseconds

	Fingerprint []byte // of its input, as MessagePack, used to compare a second start

	Due   int64    // end of the suspension, 0 if no time ends it
	Waits []string // names of signals that it waits for
	Steps int      // entries in its journal
	Bytes int64    // size of its values

	Signals     uint64 // number of signals received so far
	Unread      int    // how many of them were not consumed
	Restarts    int
	Cancel      string // why it is being cancelled, "" if it is not
	Terminate   string // why it must end at once, "" if it need not
	Paused      bool
	Error       string // why it failed or is blocked
	Chain       []errorText
	Parent      pawl.ID
	ParentSeq   uint32 // seq of the parent's entry that waits for it
	OutputBytes int    // -1 if there is no output
	Forked      pawl.ID
	Journal     uint8    // which of its two journals is in use, 0 or 1
	Declared    []string // signals of its flow, in the build that ran it last
	Changes     uint64   // how often the row was written
	Deadline    int64    // when it is cancelled

	Key    string    // the key from its start
	Places placeKind // the places that it has, a set
	Line   placeKind // the lines in which it waits to begin, a set
	Number uint64    // its number in the line of its flow

	Attributes []attribute // sorted by name

	KeyNumber uint64 // its number in the line of its key

	// Its input and output as they are stored. Nil means that it has none, or that it is among the blobs: it has more than
	// maxInRow bytes, or an older build wrote it.
	Input, Output []byte
}

func (r *runRow) open() bool { return !r.Status.Ended() }

// run reads the row of a run. It returns nil if there is none.
func (r rows) run(id pawl.ID) (*runRow, error) {
	content, err := r.get(tableRuns, id[:])
	if content == nil || err != nil {
		return nil, err
	}
	row, err := decodeRow(content)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %v", id, pawl.ErrCorrupt, err) // not an error of the caller's arguments
	}
	return row, nil
}

// mustRun is like run, for a caller that needs the row to exist.
func (r rows) mustRun(id pawl.ID) (*runRow, error) {
	row, err := r.run(id)
	if row == nil && err == nil {
		err = fmt.Errorf("run %s: %w", id, ErrNotFound)
	}
	return row, err
}

func (r rows) putRun(id pawl.ID, row *runRow) error {
	row.Changes++
	return r.put(tableRuns, id[:], encodeRow(row))
}

// find returns the run with a user's ID, or zero if there is none.
func (r rows) find(flow, id string) (pawl.ID, error) {
	content, err := r.get(tableIDs, idKey(flow, id))
	if content == nil || err != nil {
		return pawl.ID{}, err
	}
	if len(content) != len(pawl.ID{}) {
		return pawl.ID{}, fmt.Errorf("%w: the row of workflow %s %q", pawl.ErrCorrupt, flow, id)
	}
	return pawl.ID(content), nil
}

// entry reads one entry of a journal. It returns nil if there is none.
func (r rows) entry(run pawl.ID, seq uint32) (*entry, error) {
	key := seqKey(run, seq)
	content, err := r.get(tableSteps, key)
	if content == nil || err != nil {
		return nil, err
	}
	return parseEntry(key, content)
}

// entries reads a journal of a run. Unlike other reads, it fails if the table is missing: without
// its journal, a run would repeat all of its calls.
func (r rows) entries(run pawl.ID, which uint8) (journal []*entry, err error) {
	if _, err := r.Get(tableSteps, run[:]); err != nil {
		return nil, err
	}
	err = r.each(tableSteps, journalPrefix(run, which), func(key, content []byte, damage error) error {
		if damage != nil {
			return damage
		}
		e, err := parseEntry(key, content)
		if err == nil {
			journal = append(journal, e)
		}
		return err
	})
	return journal, err
}

// blob reads a value that is stored apart.
func (r rows) blob(run pawl.ID, seq uint32) ([]byte, error) {
	key := seqKey(run, seq)
	content, err := r.get(tableBlobs, key)
	if err == nil && content == nil {
		err = fmt.Errorf("%w: value %d of run %s is missing", pawl.ErrCorrupt, seq, run)
	}
	return bytes.Clone(content), err
}

// input returns the input of a run.
func (r rows) input(run pawl.ID, row *runRow) ([]byte, error) {
	if row.Input != nil {
		return row.Input, nil
	}
	return r.blob(run, inputSeq)
}

// output returns the result of a run that is done.
func (r rows) output(run pawl.ID, row *runRow) ([]byte, error) {
	if row.Output != nil {
		return row.Output, nil
	}
	return r.blob(run, outputSeq)
}

// fitsRow reports whether an input or output belongs in the row of its run.
func fitsRow(value []byte) bool { return 0 < len(value) && len(value) <= maxInRow }

// value returns the result of an entry.
func (r rows) value(run pawl.ID, e *entry) ([]byte, error) {
	if !e.Apart {
		return e.Result, nil
	}
	b, err := r.blob(run, e.seq)
	if err == nil && len(b) != e.Size {
		return nil, fmt.Errorf("%w: value %d of run %s has %d bytes, its entry says %d", pawl.ErrCorrupt, e.seq, run, len(b), e.Size)
	}
	return b, err
}

// parseEntry returns a copy of an entry, which stays valid after the transaction.
func parseEntry(key, content []byte) (*entry, error) {
	if len(key) != 20 {
		return nil, fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tableSteps)
	}
	e, err := decodeEntry(content)
	e.seq = binary.BigEndian.Uint32(key[16:])
	if err != nil {
		return nil, fmt.Errorf("entry %d of run %x: %w: %v", e.seq, key[:16], pawl.ErrCorrupt, err)
	}
	if e.Size < 0 {
		return nil, fmt.Errorf("entry %d of run %x: %w: it has a size of %d", e.seq, key[:16], pawl.ErrCorrupt, e.Size)
	}
	return e, nil
}

// unixNano converts a time to its form in rows. It uses the first or last possible value for a
// time out of range.
func unixNano(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
