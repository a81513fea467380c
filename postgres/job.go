package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The places of jobs in the table, which the partial indexes name.
const (
	placeReady     = 0 // leased jobs too: they have a token
	placeDelayed   = 1
	placeWaiting   = -1 // ready, but waits for other jobs
	placeDead      = 3
	placeCompleted = 4
	placeTurn      = -2 // ready, but not its turn
)

// job is a job in a transaction. Its state says where the transaction puts it.
type job struct {
	pawl.Envelope
	token     int64
	payload   int    // bytes of the payload of a stored job
	stored    bool   // it has a row
	changed   bool   // the transaction has touched it
	gone      bool   // its row will be removed
	marked    bool   // it is leased, and only its mark as cancelled changes
	rewritten bool   // it is leased, and only its record changes
	edited    bool   // the envelope has a new payload
	holds     bool   // it takes its unique key
	readied   bool   // it became ready
	late      bool   // it became ready, and gets its tag later
	tagged    bool   // its row has a tag
	waits     bool   // it waits for other jobs
	awaited   bool   // other jobs may wait for it
	turn      string // its queue and key, if the queue runs the jobs of a key in order
	order     pawl.KeyOrder
	failures  []pawl.Failure
	snapshots []*pawl.Envelope // copies of a new job, which get its sequence
}

// jobRow is the columns of a job. pgx reads a pgtype.Int8 faster than a *int64.
type jobRow struct {
	id                 pgtype.UUID
	seq                int64
	token, leasedSince pgtype.Int8
	place              int16
	cancelled          bool
	record, payload    []byte
	waits, awaited     pgtype.Bool
	turn               []byte // as turnColumn
}

// fields returns where the columns go.
func (r *jobRow) fields() []any {
	return []any{&r.id, &r.seq, &r.token, &r.leasedSince, &r.place, &r.cancelled, &r.record, &r.waits, &r.awaited, &r.turn}
}

// job returns the job of a row.
func (r *jobRow) job() (*job, error) {
	e, apart, err := driver.ParseRecord(r.record)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", pawl.ID(r.id.Bytes), err)
	}
	if e.ID != pawl.ID(r.id.Bytes) {
		return nil, fmt.Errorf("job %s: %w: its record is that of job %s", pawl.ID(r.id.Bytes), pawl.ErrCorrupt, e.ID)
	}
	e.Seq, e.Cancelled = uint64(r.seq), r.cancelled
	if len(r.payload) > 0 {
		e.Payload = r.payload
	}
	j := &job{Envelope: *e, stored: true, payload: apart, tagged: e.FairTag != 0, waits: r.waits.Valid, awaited: r.awaited.Valid}
	j.inTurn(r.turn)
	j.State = stateOf(r.place, r.token.Valid)
	if j.token = r.token.Int64; r.token.Valid && r.leasedSince.Valid {
		j.LeasedSince = timeOf(r.leasedSince.Int64)
	}
	return j, nil
}

// stateOf returns the state of a job at a place.
func stateOf(place int16, leased bool) pawl.State {
	switch {
	case leased:
		return pawl.Leased
	case place == placeDelayed:
		return pawl.Delayed
	case place == placeDead:
		return pawl.Dead
	case place == placeCompleted:
		return pawl.Completed
	}
	return pawl.Ready
}

// placeOf returns the place of the jobs of a state.
func placeOf(state pawl.State) int16 {
	switch state {
	case pawl.Delayed:
		return placeDelayed
	case pawl.Dead:
		return placeDead
	case pawl.Completed:
		return placeCompleted
	}
	return placeReady
}

// since returns the place of a job, and the time or the tag that orders the jobs of that place.
func (j *job) since() (place int16, since int64) {
	at := j.NotBefore
	switch j.State {
	case pawl.Ready:
		if since = nanos(at); j.FairTag != 0 {
			since = j.FairTag
		}
		switch {
		case j.waits:
			return placeWaiting, since
		case j.late:
			return placeDelayed, since
		case j.turn != "" && !j.HoldsKey:
			return placeTurn, since
		}
		return placeReady, since
	case pawl.Dead:
		at = j.Death.At
	case pawl.Completed:
		at = j.Completed.Add(j.Retain)
	}
	return placeOf(j.State), nanos(at)
}

// lane returns the lane of a job, by its crashes, and by first attempts or retries.
func (j *job) lane() int16 {
	lane := 2 * int16(min(j.Crashes, 2))
	if j.Attempts > 0 {
		lane++
	}
	return lane
}

// prio returns the priority of a job as a number. The smallest goes first.
func (j *job) prio() int16 { return prioOf(j.Priority) }

func prioOf(priority int8) int16 { return 127 - int16(priority) }

// isRepeat reports whether a job is a repeat suspect. At most one of these is leased at a time.
func (j *job) isRepeat() bool { return j.Crashes >= 2 }

// repeatSlot is the name of the row of effects that the leased repeat suspect holds.
const repeatSlot = ""

// deadline returns the column of a deadline.
func (j *job) deadline() *int64 {
	if j.Deadline.IsZero() {
		return nil
	}
	at := nanos(j.Deadline)
	return &at
}

// uuids returns IDs as a parameter.
func uuids(ids []pawl.ID) pgtype.FlatArray[pgtype.UUID] {
	list := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		list[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	return list
}
