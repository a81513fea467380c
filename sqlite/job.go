package sqlite

import (
	sqldriver "database/sql/driver"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// The places of jobs in the table, which the partial indexes name. All have one byte in a row.
const (
	placeWaiting   = 1 // ready, but waits for other jobs
	placeReady     = 2
	placeDelayed   = 3
	placeLeased    = 4
	placeDead      = 5
	placeCompleted = 6
)

// job is a job in a transaction. Its state says where it is.
type job struct {
	pawl.Envelope
	line    int64
	token   int64 // token of its lease
	payload int   // bytes of the payload of a stored job
	stored  bool  // it has a row
	waits   bool  // it is being put into ready, and waits for others
}

// jobOf returns the job of a row of columns. With an error it has only what the other columns say.
func jobOf(v []sqldriver.Value) (*job, error) {
	j := &job{line: number(v[2]), token: number(v[5]), payload: int(number(v[9])), stored: true}
	copy(j.ID[:], bytesOf(v[1]))
	e, _, err := driver.ParseRecord(bytesOf(v[8]))
	if err == nil && e.ID != j.ID {
		err = fmt.Errorf("%w: its record is that of job %s", pawl.ErrCorrupt, e.ID)
	}
	if err != nil {
		err = fmt.Errorf("job %s: %w", j.ID, err)
	} else {
		j.Envelope = *e
	}
	j.Seq, j.Cancelled, j.State = uint64(number(v[0])), number(v[7]) != 0, stateOf(number(v[3]))
	if j.State == pawl.Leased {
		j.LeasedSince = timeOf(number(v[6]))
	}
	return j, err
}

// stateOf returns the state of a job at a place.
func stateOf(place int64) pawl.State {
	switch place {
	case placeDelayed:
		return pawl.Delayed
	case placeLeased:
		return pawl.Leased
	case placeDead:
		return pawl.Dead
	case placeCompleted:
		return pawl.Completed
	}
	return pawl.Ready
}

// placeOf returns the place of the jobs of a state.
func placeOf(state pawl.State) int64 {
	switch state {
	case pawl.Delayed:
		return placeDelayed
	case pawl.Leased:
		return placeLeased
	case pawl.Dead:
		return placeDead
	case pawl.Completed:
		return placeCompleted
	}
	return placeReady
}

// since returns the place of a job, and the time that orders the jobs of that place.
func (j *job) since() (place, since int64) {
	at := j.NotBefore
	if j.waits {
		return placeWaiting, nanos(at)
	}
	switch j.State {
	case pawl.Dead:
		at = j.Death.At
	case pawl.Completed:
		at = j.Completed.Add(j.Retain)
	}
	return placeOf(j.State), nanos(at)
}

// lane returns the lane of a job, by its crashes, and by first attempts or retries.
func (j *job) lane() int64 {
	lane := 2 * int64(min(j.Crashes, 2))
	if j.Attempts > 0 {
		lane++
	}
	return lane
}

// deadline returns the column of a deadline.
func (j *job) deadline() sqldriver.Value {
	if j.Deadline.IsZero() {
		return nil
	}
	return nanos(j.Deadline)
}

// effectColumn returns the column of an effect.
func (j *job) effectColumn() sqldriver.Value {
	if name := core.EffectName(&j.Envelope); name != "" {
		return []byte(name)
	}
	return nil
}

// payloadColumn returns the column of a payload.
func payloadColumn(payload []byte) []byte {
	if payload == nil {
		return []byte{}
	}
	return payload
}

// recordOf returns the record of a job.
func recordOf(j *job) []byte {
	size := j.payload
	if !j.stored {
		size = len(j.Payload)
	}
	return driver.AppendRecord(nil, &j.Envelope, size)
}

// isRepeat reports whether a job is a repeat suspect. At most one of these is leased at a time.
func (j *job) isRepeat() bool { return j.Crashes >= 2 }

// createdOf returns the time in an ID, which begins with it.
func createdOf(id pawl.ID) time.Time {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms)
}
