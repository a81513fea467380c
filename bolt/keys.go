package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// Names of the buckets. All of them are inside bucketRoot, so a queue can share a file with
// other data.
var (
	bucketRoot = []byte("pawl")

	bucketMeta     = []byte("meta")     // "format" -> version
	bucketQueues   = []byte("queues")   // names and numbers of queues and kinds, counts of lines
	bucketJobs     = []byte("jobs")     // ID -> record of the job
	bucketPayloads = []byte("payloads") // ID -> payload that is too large for the record
	bucketHistory  = []byte("history")  // ID, number -> one failed attempt

	// The states. Each job has a row in exactly one of them.
	bucketReady     = []byte("ready")     // queue, kind, lane, priority, since or tag, seq -> ID
	bucketDelayed   = []byte("delayed")   // wait condition -> ID and place in ready
	bucketLeased    = []byte("leased")    // ID -> token and start of the lease
	bucketFailed    = []byte("failed")    // queue, time of death, seq -> ID
	bucketCompleted = []byte("completed") // end of retention, seq -> ID

	// Rows that few jobs have.
	bucketUnique  = []byte("unique")  // queue, kind, unique key -> ID of the job that has the key
	bucketEffects = []byte("effects") // kind, idempotency key -> job that holds the key, time until which it counts as done
	bucketKeys    = []byte("keys")    // queue, key -> how many of its jobs are leased or ready, and whether others are blocked
	bucketExpiry  = []byte("expiry")  // time -> a deadline, or the end of an effect or a retention

	buckets = [][]byte{
		bucketMeta, bucketQueues, bucketJobs, bucketPayloads, bucketHistory,
		bucketReady, bucketDelayed, bucketLeased, bucketFailed, bucketCompleted,
		bucketUnique, bucketEffects, bucketKeys, bucketExpiry,
	}

	keyFormat = []byte("format")
)

// formatVersion is the version of the layout that this build reads and writes.
const formatVersion = 1

// queueNumber stands for a queue's name in keys. Names have any bytes and any length, so a name
// never precedes another field.
type queueNumber uint32

// kindNumber stands for a kind's name in keys, as queueNumber does for a queue's name.
type kindNumber uint32

// line identifies the jobs of one kind on one queue. A fetch names kinds, so the order of ready
// jobs and the counts of each state are kept per line.
type line struct {
	queue queueNumber
	kind  kindNumber
}

// lane separates the ready jobs of a line by their number of crashes, so that a fetch skips
// jobs it may not lease without walking over them. Within that it separates retries from first
// attempts.
type lane byte

const lanes lane = 6

// class is the crash history shared by the jobs of a lane.
type class byte

const (
	clean   class = iota // never crashed
	suspect              // crashed once: leased only into a free slot
	repeat               // crashed at least twice: leased one at a time
)

func laneOf(e *pawl.Envelope) lane {
	l := lane(min(e.Crashes, int(repeat))) << 1
	if e.Attempts > 0 {
		l |= 1
	}
	return l
}

func (l lane) class() class  { return class(l >> 1) }
func (l lane) retries() bool { return l&1 != 0 }

// Widths of key parts in bytes.
const (
	timeWidth  = 12
	lineWidth  = 4 + 4
	lanePrefix = lineWidth + 1
	orderWidth = 1 + timeWidth + 8 // priority, since or tag, seq: the order within a lane
)

// appendTime appends t so that byte order is time order for any year: seconds with the sign bit
// flipped, then nanoseconds. A single int64 of nanoseconds would overflow in 2262.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

func timeAt(b []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(b)^1<<63), int64(binary.BigEndian.Uint32(b[8:])))
}

func appendLine(b []byte, ln line) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(ln.queue))
	return binary.BigEndian.AppendUint32(b, uint32(ln.kind))
}

// lineAt reads a line written by appendLine.
func lineAt(b []byte) line {
	return line{queueNumber(binary.BigEndian.Uint32(b)), kindNumber(binary.BigEndian.Uint32(b[4:]))}
}

func appendLane(b []byte, ln line, l lane) []byte { return append(appendLine(b, ln), byte(l)) }

// readyKey returns the key of e in ready.
func readyKey(b []byte, ln line, e *pawl.Envelope) []byte {
	return appendOrder(appendLane(b, ln, laneOf(e)), e)
}

func appendOrder(b []byte, e *pawl.Envelope) []byte {
	b = append(b, byte(127-int(e.Priority)))
	if e.FairTag != 0 {
		b = appendTime(b, time.Unix(0, e.FairTag))
	} else {
		b = appendTime(b, e.NotBefore)
	}
	return binary.BigEndian.AppendUint64(b, e.Seq)
}

// orderAt reads the priority and the sequence in the order of a job within its lane.
func orderAt(b []byte) (priority int8, seq uint64) {
	return priorityAt(b), binary.BigEndian.Uint64(b[1+timeWidth:])
}

func priorityAt(b []byte) int8 { return int8(127 - int(b[0])) }

// The first byte of a delayed row's key is what the job waits for.
const (
	waitsForTime  byte = iota // a time
	waitsForKey               // its idempotency key, which is leased under another job
	waitsForLimit             // room for its key in its queue
	waitsForTurn              // its turn among the jobs of its key, which run in order
	waitsForJobs              // other jobs
)

func delayedKey(b []byte, e *pawl.Envelope) []byte {
	b = append(b, waitsForTime)
	b = appendTime(b, e.NotBefore)
	return binary.BigEndian.AppendUint64(b, e.Seq)
}

// heldPrefix returns the prefix of the delayed keys of jobs that wait for an idempotency key.
func heldPrefix(b []byte, effect []byte) []byte {
	return append(append(b, waitsForKey), effect...)
}

func heldKey(b []byte, effect []byte, ln line, e *pawl.Envelope) []byte {
	return readyKey(heldPrefix(b, effect), ln, e)
}

// awaitKey returns the delayed key of a job that waits for others, given its key in ready.
func awaitKey(b, ready []byte) []byte { return append(append(b, waitsForJobs), ready...) }

// limitKey returns the key of a job's key in a queue. No limit key is a prefix of another.
func limitKey(b []byte, n queueNumber, key string) []byte {
	b = binary.BigEndian.AppendUint32(slices.Grow(b, 4+1+len(key)), uint32(n))
	return append(append(b, byte(len(key))), key...)
}

// ownKey returns the limit key of the row for the limits of a queue itself. No key of a job is empty.
func ownKey(n queueNumber) []byte { return limitKey(nil, n, "") }

// isOwn reports whether a limit key is that of a queue itself.
func isOwn(limit []byte) bool { return len(limit) == 5 && limit[4] == 0 }

// blockedPrefix returns the prefix of the delayed keys of jobs that wait for room for their key.
func blockedPrefix(b, limit []byte) []byte { return append(append(b, waitsForLimit), limit...) }

// blockedKey returns the delayed key of a job that waits for room for its key.
func blockedKey(b []byte, ln line, e *pawl.Envelope) []byte {
	return readyKey(blockedPrefix(b, limitKey(nil, ln.queue, e.Key)), ln, e)
}

// effectKey returns the key for the idempotency key of a job, on any queue. No effect key is a
// prefix of another.
func effectKey(b []byte, e *pawl.Envelope) []byte {
	b = append(append(b, byte(len(e.Kind))), e.Kind...)
	return append(append(b, byte(len(e.IdempotencyKey))), e.IdempotencyKey...)
}

func uniqueKey(b []byte, q queueNumber, e *pawl.Envelope) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(q))
	b = append(append(b, byte(len(e.Kind))), e.Kind...)
	return append(b, e.UniqueKey...)
}

// completedUntil returns when the record of a completed job is removed.
func completedUntil(e *pawl.Envelope) time.Time { return e.Completed.Add(e.Retain) }

func completedKey(b []byte, e *pawl.Envelope) []byte {
	return binary.BigEndian.AppendUint64(appendTime(b, completedUntil(e)), e.Seq)
}

// In rows of expiry, the byte after the time says what ends.
const (
	endsLife   byte = iota // a job, at its deadline: its ID follows
	endsEffect             // an effect that counts as done: its key follows
	endsRest               // the time of a key in which no more jobs may start: its limit key follows
)

func restKey(b []byte, until time.Time, limit []byte) []byte {
	return append(append(appendTime(b, until), endsRest), limit...)
}

func deadlineKey(b []byte, e *pawl.Envelope) []byte {
	return append(append(appendTime(b, e.Deadline), endsLife), e.ID[:]...)
}

func effectEndKey(b []byte, until time.Time, effect []byte) []byte {
	return append(append(appendTime(b, until), endsEffect), effect...)
}

func failedKey(b []byte, q queueNumber, at time.Time, seq uint64) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(q))
	b = appendTime(b, at)
	return binary.BigEndian.AppendUint64(b, seq)
}

func historyKey(b []byte, id pawl.ID, n int) []byte {
	return binary.BigEndian.AppendUint32(append(b, id[:]...), uint32(n))
}

// sealWidth is the size of a row's checksum in bytes.
const sealWidth = 4

// seal appends the checksum of key and value to value. Every row is sealed except a job's
// record, which has its own checksum.
func seal(key, value []byte) []byte {
	return binary.LittleEndian.AppendUint32(value, sum(key, value))
}

// unseal returns the value of a sealed row of the given width, or of any width if width is -1.
func unseal(key, sealed []byte, width int) ([]byte, error) {
	n := len(sealed) - sealWidth
	if n < 0 || width >= 0 && n != width {
		return nil, fmt.Errorf("%w: a row of %d bytes", pawl.ErrCorrupt, len(sealed))
	}
	if binary.LittleEndian.Uint32(sealed[n:]) != sum(key, sealed[:n]) {
		return nil, fmt.Errorf("%w: the checksum of a row does not match", pawl.ErrCorrupt)
	}
	return sealed[:n], nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the CRC-32C of key and value together, so a value found under the wrong key does
// not match either.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}
