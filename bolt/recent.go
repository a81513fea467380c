package bolt

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The value of a job in bucketJobs is its record, or its recent failures and its record:
//
//	1 byte   recentForm, which no record begins with
//	2 bytes  size of the next part
//	n bytes  not-before (12), then for each failure: time (12), length of the error (2), error
//	4 bytes  CRC-32C of the ID and all of the above
//	rest     the record, as it was before these failures
//
// So a failed attempt neither parses nor rewrites the record, and adds no row to the history. The
// next change of the record moves the failures to the history.
const (
	recentForm   = 3
	recentHeader = 1 + 2
	maxRecent    = 512 // most bytes of failures in front of a record
)

// recent is the failures of a job that its record does not count yet.
type recent struct {
	failures []byte
	n        int // how many there are
	attempts int // the attempts that the record counts
}

// cutRecent splits the value of a job. Failures is nil if there are none.
func cutRecent(id pawl.ID, b []byte) (failures, record []byte, err error) {
	if len(b) == 0 || b[0] != recentForm {
		return nil, b, nil
	}
	return cutFailures(id, b)
}

// cutFailures is cutRecent for a value with failures. It is a function of its own so that cutRecent
// moves no ID to the heap.
func cutFailures(id pawl.ID, b []byte) (failures, record []byte, err error) {
	if len(b) < recentHeader {
		return nil, nil, fmt.Errorf("%w: a record of %d bytes", pawl.ErrCorrupt, len(b))
	}
	end := recentHeader + int(binary.BigEndian.Uint16(b[1:])) + sealWidth
	if len(b) < end {
		return nil, nil, fmt.Errorf("%w: a record of %d bytes with %d bytes of failures", pawl.ErrCorrupt, len(b), end)
	}
	front, err := unseal(id[:], b[:end], -1)
	if err != nil {
		return nil, nil, err
	}
	return front[recentHeader:], b[end:], nil
}

// appendRecent appends to dst the new value of a job whose attempt failed at a time for a cause. The
// job must not start before notBefore. Failures and record are the parts of its old value.
func appendRecent(dst, id, failures, record []byte, notBefore, at time.Time, cause string) []byte {
	if failures != nil {
		failures = failures[timeWidth:]
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(append(dst, recentForm), uint16(recentSize(failures, cause)))
	dst = append(appendTime(dst, notBefore), failures...)
	dst = binary.BigEndian.AppendUint16(appendTime(dst, at), uint16(len(cause)))
	dst = append(dst, cause...)
	dst = binary.LittleEndian.AppendUint32(dst, sum(id, dst[start:]))
	return append(dst, record...)
}

// recentSize returns the size of failures plus one more with the given cause, without their
// not-before.
func recentSize(failures []byte, cause string) int {
	return timeWidth + len(failures) + timeWidth + 2 + len(cause)
}

// catchUp applies the recent failures to a job that was read from its record.
func (j *stored) catchUp(failures []byte) error {
	if failures == nil {
		return nil
	}
	j.recent = recent{failures: failures, attempts: j.Attempts}
	for at, _, rest := nextRecent(failures[min(len(failures), timeWidth):]); rest != nil; at, _, rest = nextRecent(rest) {
		j.recent.n++
		j.Attempts = driver.NextAttempt(j.Attempts)
		j.Failures++
		j.BackoffSince = at
		if len(rest) == 0 {
			j.NotBefore = timeAt(failures)
			j.Crashes = 0
			return nil
		}
	}
	return fmt.Errorf("job %s: %w: its recent failures are cut off", j.ID, pawl.ErrCorrupt)
}

// nextRecent reads the first of some recent failures. Rest is nil if that failure is truncated.
func nextRecent(b []byte) (at time.Time, text, rest []byte) {
	const header = timeWidth + 2
	if len(b) < header {
		return at, nil, nil
	}
	end := header + int(binary.BigEndian.Uint16(b[timeWidth:]))
	if len(b) < end {
		return at, nil, nil
	}
	return timeAt(b), b[header:end], b[end:]
}

// list returns the recent failures as entries of the history.
func (r *recent) list() []pawl.Failure {
	if r.n == 0 {
		return nil
	}
	all := make([]pawl.Failure, r.n)
	attempt, rest := r.attempts, r.failures[timeWidth:]
	for i := range all {
		var at time.Time
		var text []byte
		at, text, rest = nextRecent(rest)
		attempt = driver.NextAttempt(attempt)
		all[i] = pawl.Failure{Attempt: attempt, At: at, Error: string(text)}
	}
	return all
}

// flush moves the recent failures of a job to its history. The caller rewrites the record.
func (t *txn) flush(j *stored) {
	first := j.Failures - j.recent.n
	for i, f := range j.recent.list() {
		t.keepFailure(j.ID, first+i, f)
	}
	j.recent = recent{}
}
