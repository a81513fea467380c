package workflow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// The buckets of docs/design.md, below one at the top of the file.
var (
	bucketRoot      = []byte("pawl.workflow")
	bucketRuns      = []byte("runs")
	bucketIDs       = []byte("ids")
	bucketSteps     = []byte("steps")
	bucketBlobs     = []byte("blobs")
	bucketSignals   = []byte("signals")
	bucketSeen      = []byte("seen")
	bucketPublished = []byte("published")
	bucketBlocked   = []byte("blocked")
	bucketEnded     = []byte("ended")

	buckets = [...][]byte{bucketRuns, bucketIDs, bucketSteps, bucketBlobs, bucketSignals,
		bucketSeen, bucketPublished, bucketBlocked, bucketEnded}
)

// Where input and output of a run are among its blobs; entries are numbered from 1.
const (
	inputSeq  = 0
	outputSeq = math.MaxUint32
)

// rowVersion is the first byte of each value.
const rowVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal makes a row's value of its content.
func seal(bucket, key, content []byte) []byte {
	value := append(make([]byte, 0, 1+len(content)+4), rowVersion)
	value = append(value, content...)
	return binary.BigEndian.AppendUint32(value, checksum(bucket, key, value))
}

// checksum is over all that a row is, and where: pages that were mixed up have rows of one
// bucket in another whose keys look alike.
func checksum(bucket, key, value []byte) uint32 {
	sum := crc32.Checksum(bucket, castagnoli)
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

// unseal returns the content of a row's value, which is a part of it.
func unseal(bucket, key, value []byte) (content []byte, err error) {
	switch n := len(value) - 4; {
	case n < 1 || binary.BigEndian.Uint32(value[n:]) != checksum(bucket, key, value[:n]):
		err = fmt.Errorf("%w: the checksum of a row of a workflow is wrong", pawl.ErrCorrupt)
	case value[0] > rowVersion:
		err = fmt.Errorf("%w: a row of a workflow has form %d, this build reads up to %d", bolt.ErrNewerFormat, value[0], rowVersion)
	case value[0] < rowVersion:
		err = fmt.Errorf("%w: a row of a workflow has form %d, which there never was", pawl.ErrCorrupt, value[0])
	default:
		return value[1:n], nil
	}
	return nil, fmt.Errorf("bucket %s, key %x: %w", bucket, key, err)
}

// rows are the buckets of workflows in one transaction. Where there never was a workflow
// they are nil, and every read finds nothing.
type rows struct {
	root *bbolt.Bucket
}

func rowsOf(tx *bbolt.Tx) rows { return rows{tx.Bucket(bucketRoot)} }

// makeRows is rowsOf for who writes: it makes the buckets where there are none. A root without
// any is what a salvage leaves that could read no row of them. Where but some are missing rows
// are lost, and they stay missing: a run without its journal would do all of it again.
func makeRows(tx *bbolt.Tx) (rows, error) {
	if root := tx.Bucket(bucketRoot); root != nil {
		if root.Bucket(bucketRuns) != nil {
			return rows{root}, nil
		}
		if first, _ := root.Cursor().First(); first != nil {
			return rows{root}, nil
		}
	}
	root, err := tx.CreateBucketIfNotExists(bucketRoot)
	if errors.Is(err, berrors.ErrIncompatibleValue) {
		return rows{}, fmt.Errorf("%w: %s is no bucket", pawl.ErrCorrupt, bucketRoot)
	}
	if err != nil {
		return rows{}, err
	}
	for _, name := range buckets {
		if _, err := root.CreateBucket(name); err != nil {
			return rows{}, err
		}
	}
	return rows{root}, nil
}

func (r rows) bucket(name []byte) *bbolt.Bucket {
	if r.root == nil {
		return nil
	}
	return r.root.Bucket(name)
}

// get returns the content of a row, nil when there is none.
func (r rows) get(bucket, key []byte) ([]byte, error) {
	b := r.bucket(bucket)
	if b == nil {
		return nil, nil
	}
	value := b.Get(key)
	if value == nil {
		return nil, nil
	}
	return unseal(bucket, key, value)
}

var errNoBucket = fmt.Errorf("%w: a bucket of workflows is missing", pawl.ErrCorrupt)

func (r rows) put(bucket, key, content []byte) error {
	b := r.bucket(bucket)
	if b == nil {
		return errNoBucket
	}
	return writable(b.Put(key, seal(bucket, key, content)))
}

func (r rows) delete(bucket, key []byte) error {
	b := r.bucket(bucket)
	if b == nil {
		return errNoBucket
	}
	return writable(b.Delete(key))
}

// writable says of an error of bbolt's that the file is damaged: a bucket lies in the place of
// a row, or a row has led to a key that none can have.
func writable(err error) error {
	if errors.Is(err, berrors.ErrIncompatibleValue) || errors.Is(err, berrors.ErrKeyTooLarge) {
		return fmt.Errorf("%w: a row of a workflow cannot be written: %w", pawl.ErrCorrupt, err)
	}
	return err
}

// each calls fn for the rows whose keys begin with prefix, in order, until it answers false.
// A row that cannot be read comes with an error.
func (r rows) each(bucket, prefix []byte, fn func(key, content []byte, err error) (more bool)) {
	b := r.bucket(bucket)
	if b == nil {
		return
	}
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		content, err := unseal(bucket, k, v)
		if !fn(k, content, err) {
			return
		}
	}
}

// Keys.

func seqKey(run pawl.ID, seq uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 20), run[:]...), seq)
}

func idKey(flow, id string) []byte {
	return append(append(append(make([]byte, 0, len(flow)+1+len(id)), flow...), 0), id...)
}

// signalsOf begins the keys of all signals of one name to a run.
func signalsOf(run pawl.ID, name string) []byte {
	return append(append(append(make([]byte, 0, 16+len(name)+1+8), run[:]...), name...), 0)
}

func signalKey(run pawl.ID, name string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(signalsOf(run, name), n)
}

// runAnd is a key of a run's in seen and published.
func runAnd(run pawl.ID, name string) []byte {
	return append(append(make([]byte, 0, 16+len(name)), run[:]...), name...)
}

// endedKey sorts by the time to remove the run at.
func endedKey(until time.Time, run pawl.ID) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(until.UnixNano())^1<<63)
	return append(b, run[:]...)
}

func parseEndedKey(key []byte) (until time.Time, run pawl.ID, err error) {
	if len(key) != 24 {
		return time.Time{}, run, fmt.Errorf("%w: key %x of bucket %s", pawl.ErrCorrupt, key, bucketEnded)
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
	Build  string // which ran it last
	Queue  string // of its job

	Created int64 // nanoseconds since 1970, as all times here; 0 for none
	Ended   int64
	Retain  int64 // nanoseconds to keep it once it has ended

	Input []byte // fingerprint of it, by which a second start is compared

	Due   int64    // until when it is suspended, 0 when no time ends that
	Waits []string // names of signals that it waits for
	Steps int      // entries in its journal
	Bytes int64    // of its values

	Signals     uint64 // that ever came
	Unread      int    // of them, that were not consumed
	Restarts    int
	Cancel      string // why it is to be cancelled, "" when it is not
	Terminate   string // why it is to end at once, "" when it is not
	Paused      bool
	Error       string // why it failed or is blocked
	Chain       []errorText
	Parent      pawl.ID
	ParentSeq   uint32 // of the entry that waits for it
	OutputBytes int    // -1 where there is none
	Forked      pawl.ID
	Journal     uint8    // which of its two journals is in use
	Declared    []string // signals of its flow, as of the build that ran it last
}

func (r *runRow) open() bool { return !r.Status.Ended() }

// run reads the row of a run; nil when there is none.
func (r rows) run(id pawl.ID) (*runRow, error) {
	content, err := r.get(bucketRuns, id[:])
	if content == nil || err != nil {
		return nil, err
	}
	row := new(runRow)
	if err := pawl.DecodePayload(content, row); err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, pawl.ErrCorrupt, err)
	}
	return row, nil
}

// mustRun is run for who needs one.
func (r rows) mustRun(id pawl.ID) (*runRow, error) {
	row, err := r.run(id)
	if row == nil && err == nil {
		err = fmt.Errorf("run %s: %w", id, ErrNotFound)
	}
	return row, err
}

func (r rows) putRun(id pawl.ID, row *runRow) error {
	content, err := pawl.EncodePayload(row)
	if err != nil {
		return err
	}
	return r.put(bucketRuns, id[:], content)
}

// find is the run that an ID of the user's names; zero when there is none.
func (r rows) find(flow, id string) (pawl.ID, error) {
	content, err := r.get(bucketIDs, idKey(flow, id))
	if content == nil || err != nil {
		return pawl.ID{}, err
	}
	if len(content) != len(pawl.ID{}) {
		return pawl.ID{}, fmt.Errorf("%w: the row of workflow %s %q", pawl.ErrCorrupt, flow, id)
	}
	return pawl.ID(content), nil
}

// entry reads one entry of a journal; nil when there is none.
func (r rows) entry(run pawl.ID, seq uint32) (*entry, error) {
	key := seqKey(run, seq)
	content, err := r.get(bucketSteps, key)
	if content == nil || err != nil {
		return nil, err
	}
	return parseEntry(key, content)
}

// entries reads a journal of a run.
func (r rows) entries(run pawl.ID, which uint8) (journal []*entry, err error) {
	r.each(bucketSteps, journalPrefix(run, which), func(key, content []byte, damage error) bool {
		var e *entry
		if err = damage; err == nil {
			if e, err = parseEntry(key, content); err == nil {
				journal = append(journal, e)
			}
		}
		return err == nil
	})
	return journal, err
}

// blob reads a value that lies apart.
func (r rows) blob(run pawl.ID, seq uint32) ([]byte, error) {
	key := seqKey(run, seq)
	content, err := r.get(bucketBlobs, key)
	if err == nil && content == nil {
		err = fmt.Errorf("%w: value %d of run %s is missing", pawl.ErrCorrupt, seq, run)
	}
	return bytes.Clone(content), err
}

// value is the result of an entry.
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

// parseEntry copies what it returns out of the transaction.
func parseEntry(key, content []byte) (*entry, error) {
	if len(key) != 20 {
		return nil, fmt.Errorf("%w: key %x of bucket %s", pawl.ErrCorrupt, key, bucketSteps)
	}
	e := &entry{seq: binary.BigEndian.Uint32(key[16:])}
	if err := pawl.DecodePayload(content, e); err != nil {
		return nil, fmt.Errorf("entry %d of run %x: %w: %w", e.seq, key[:16], pawl.ErrCorrupt, err)
	}
	if e.Size < 0 {
		return nil, fmt.Errorf("entry %d of run %x: %w: it has a size of %d", e.seq, key[:16], pawl.ErrCorrupt, e.Size)
	}
	return e, nil
}

// unixNano is a time as rows have it, the first or the last that they can have for one beyond.
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
