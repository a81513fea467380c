package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// flags say which rows a job has besides its record, so that an ack does not have to read the record.
type flags byte

const (
	hasPayload flags = 1 << iota // in bucketPayloads
	hasHistory                   // in bucketHistory
	hasKey                       // counts in bucketKeys, if its queue limits keys
	hasMore                      // in buckets for what only its record says: keys, a deadline, a retention
	hasTag                       // no row, but its record has a tag, which its next key in ready may lack
)

// indexRow is the value in bucketReady, and the start of a value in bucketDelayed, bucketFailed
// and bucketCompleted.
type indexRow struct {
	id    pawl.ID
	flags flags
}

const indexWidth = 16 + 1

func (r indexRow) append(b []byte) []byte {
	return append(append(b, r.id[:]...), byte(r.flags))
}

func parseIndexRow(key, sealed []byte) (r indexRow, err error) {
	b, err := unseal(key, sealed, indexWidth)
	if err != nil {
		return r, err
	}
	copy(r.id[:], b)
	r.flags = flags(b[16])
	return r, nil
}

// delayedRow is the value in bucketDelayed. With it, a promotion writes the ready row without reading the job's
// record.
type delayedRow struct {
	indexRow
	ready []byte // the key in bucketReady
}

const readyKeyWidth = lanePrefix + orderWidth

// line returns the line of the job.
func (r delayedRow) line() line { return lineAt(r.ready) }

// restWidth is how many bytes at the start of a key in bucketReady are not in the delayed key of a time or a
// turn.
const restWidth = lanePrefix + 1

// append appends the value for a key in bucketDelayed. The value omits what that key already ends with: the whole
// key in bucketReady, or its time and sequence.
func (r delayedRow) append(b, key []byte) []byte {
	b = r.indexRow.append(b)
	for _, n := range [...]int{0, restWidth} {
		if bytes.HasSuffix(key, r.ready[n:]) {
			return append(b, r.ready[:n]...)
		}
	}
	return append(b, r.ready...)
}

func parseDelayedRow(key, sealed []byte) (r delayedRow, err error) {
	b, err := unseal(key, sealed, -1)
	if err != nil {
		return r, err
	}
	n := len(b) - indexWidth // of the start of the key in bucketReady
	switch {
	case n == readyKeyWidth:
		r.ready = b[indexWidth:]
	case n == 0 && len(key) >= readyKeyWidth:
		r.ready = key[len(key)-readyKeyWidth:]
	case n == restWidth && len(key) >= readyKeyWidth-restWidth:
		r.ready = slices.Concat(b[indexWidth:], key[len(key)-(readyKeyWidth-restWidth):])
	default:
		return r, fmt.Errorf("%w: a row of %d bytes", pawl.ErrCorrupt, len(sealed))
	}
	copy(r.id[:], b)
	r.flags = flags(b[16])
	return r, nil
}

// endedRow is the value in bucketFailed and bucketCompleted.
type endedRow struct {
	indexRow
	line line
}

func (r endedRow) append(b []byte) []byte {
	return appendLine(r.indexRow.append(b), r.line)
}

func parseEndedRow(key, sealed []byte) (r endedRow, err error) {
	b, err := unseal(key, sealed, indexWidth+lineWidth)
	if err != nil {
		return r, err
	}
	copy(r.id[:], b)
	r.flags = flags(b[16])
	r.line = lineAt(b[indexWidth:])
	return r, nil
}

// leaseRow is the value in bucketLeased. The file does not have the expiry: the process that holds
// the lease keeps it on monotonic time. Once that process is gone, there is nothing to wait for.
type leaseRow struct {
	token uint64
	line  line
	flags flags
	lane  lane // that the job was leased from
	since time.Time

	// Without reading the record, a failed attempt makes the job's next key in ready from these.
	priority int8
	seq      uint64

	key string // of the job, so that the end of the lease does not have to read the record
}

const leaseWidth = 8 + lineWidth + 1 + timeWidth + 1 + 8

// laneShift is where the lane of a lease begins in the byte of its flags.
const laneShift = 5

func (r leaseRow) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.token)
	b = append(appendLine(b, r.line), byte(r.flags)|byte(r.lane)<<laneShift)
	b = append(appendTime(b, r.since), byte(127-int(r.priority)))
	return append(binary.BigEndian.AppendUint64(b, r.seq), r.key...)
}

// seal appends the row to a buffer from t and seals it.
func (r leaseRow) seal(t *txn, id []byte) []byte {
	return seal(id, r.append(t.value(leaseWidth+len(r.key)+sealWidth)))
}

func parseLeaseRow(key, sealed []byte) (r leaseRow, err error) {
	b, err := unseal(key, sealed, -1)
	if err != nil {
		return r, err
	}
	if len(b) < leaseWidth || len(b) > leaseWidth+pawl.MaxKeyBytes {
		return r, fmt.Errorf("%w: the row of a lease has %d bytes", pawl.ErrCorrupt, len(b))
	}
	more := b[8+lineWidth]
	if r.flags, r.lane = flags(more&(1<<laneShift-1)), lane(more>>laneShift); r.lane >= lanes {
		return leaseRow{}, fmt.Errorf("%w: the row of a lease has lane %d", pawl.ErrCorrupt, r.lane)
	}
	r.token = binary.BigEndian.Uint64(b)
	r.line = lineAt(b[8:])
	r.since = timeAt(b[8+lineWidth+1:])
	r.priority = priorityAt(b[8+lineWidth+1+timeWidth:])
	r.seq = binary.BigEndian.Uint64(b[leaseWidth-8:])
	r.key = string(b[leaseWidth:])
	return r, nil
}

// laneAt returns the lane that the job was leased from, as in a key in bucketReady.
func (r leaseRow) laneAt() laneAt {
	var at laneAt
	appendLane(at[:0], r.line, r.lane)
	return at
}

// lineRow is the value in bucketQueues for a line: how many of its jobs are in each state. The
// file keeps these counts so that statistics are a single read and a fetch knows what it waits
// for.
type lineRow struct {
	counts pawl.Counts

	// Set in a transaction:
	touched bool // the row must be written
	news    bool // fetches have not been notified of a change
	fresh   bool // a job may have become leasable, and fetches have not been notified
}

func (r *lineRow) append(b []byte) []byte {
	for _, state := range pawl.States() {
		b = binary.BigEndian.AppendUint64(b, uint64(*driver.CountOf(&r.counts, state)))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(r.counts.Blocked))
	return binary.BigEndian.AppendUint64(b, uint64(r.counts.Held))
}

func parseLineRow(key, sealed []byte) (*lineRow, error) {
	states := pawl.States()
	b, err := unseal(key, sealed, 8*(len(states)+2))
	if err != nil {
		return nil, err
	}
	r := new(lineRow)
	for i, state := range states {
		*driver.CountOf(&r.counts, state) = int(binary.BigEndian.Uint64(b[8*i:]))
	}
	r.counts.Blocked = int(binary.BigEndian.Uint64(b[8*len(states):]))
	r.counts.Held = int(binary.BigEndian.Uint64(b[8*(len(states)+1):]))
	return r, nil
}

// effectRow is the value in bucketEffects.
type effectRow struct {
	holder pawl.ID   // the leased job that holds the key; zero if none
	done   time.Time // until when the effect counts as done; zero if it does not
}

const effectWidth = 16 + timeWidth

func (r effectRow) append(b []byte) []byte {
	return appendTime(append(b, r.holder[:]...), r.done)
}

func parseEffectRow(key, sealed []byte) (r effectRow, err error) {
	b, err := unseal(key, sealed, effectWidth)
	if err != nil {
		return r, err
	}
	copy(r.holder[:], b)
	if done := timeAt(b[16:]); !done.Equal(time.Time{}) {
		r.done = done
	}
	return r, nil
}

// appendFailure writes the value in bucketHistory.
func appendFailure(b []byte, f pawl.Failure) []byte {
	attempt := uint32(f.Attempt) &^ hasStack // a record with an absurd number may have set it
	if f.Stack != "" {
		attempt |= hasStack
	}
	b = binary.BigEndian.AppendUint32(b, attempt)
	b = appendTime(b, f.At)
	if f.Stack != "" {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f.Error)))
	}
	return append(append(b, f.Error...), f.Stack...)
}

// failureWidth returns the size of what appendFailure writes.
func failureWidth(f pawl.Failure) int {
	n := 4 + timeWidth + len(f.Error) + len(f.Stack)
	if f.Stack != "" {
		n += 4
	}
	return n
}

// hasStack in the attempt number of a failure says that a stack follows the error and that the
// length of the error precedes it.
const hasStack = 1 << 31

func parseFailure(key, sealed []byte) (f pawl.Failure, err error) {
	b, err := unseal(key, sealed, -1)
	if err != nil {
		return f, err
	}
	if len(b) < 4+timeWidth {
		return f, fmt.Errorf("%w: a failed attempt of %d bytes", pawl.ErrCorrupt, len(b))
	}
	attempt := binary.BigEndian.Uint32(b)
	f.Attempt, f.At = int(attempt&^hasStack), timeAt(b[4:])
	b = b[4+timeWidth:]
	size := len(b)
	if attempt&hasStack != 0 {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) >= uint64(len(b)-4) {
			return pawl.Failure{}, fmt.Errorf("%w: a failed attempt whose stack is cut off", pawl.ErrCorrupt)
		}
		size = int(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	f.Error, f.Stack = string(b[:size]), string(b[size:])
	return f, nil
}
