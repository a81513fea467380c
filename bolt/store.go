package bolt

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// store gives read access to the buckets of one transaction.
type store struct {
	queues, jobs, payloads, history           *table
	ready, delayed, leased, failed, completed *table
	unique, effects, keys, expiry             *table
	tables                                    []table // all of them

	foreign *tables // rows of other packages; nil until needed
	after   driver.Prerequisites
}

// others returns the rows of other packages.
func (s *store) others() *tables {
	if s.foreign == nil {
		s.foreign = &tables{tx: s.jobs.Tx()}
	}
	return s.foreign
}

// sequentialFill is the fill percent for buckets with ascending keys. Nothing is inserted
// between their rows later.
const sequentialFill = 0.9

func openStore(tx *bbolt.Tx) (s store, err error) {
	root := tx.Bucket(bucketRoot)
	if root == nil {
		return s, fmt.Errorf("%w: bucket %q is missing", pawl.ErrCorrupt, bucketRoot)
	}
	stores := [...]struct {
		to   **table
		name []byte
	}{
		{&s.jobs, bucketJobs}, {&s.payloads, bucketPayloads}, {&s.history, bucketHistory},
		{&s.ready, bucketReady}, {&s.delayed, bucketDelayed}, {&s.leased, bucketLeased},
		{&s.failed, bucketFailed}, {&s.completed, bucketCompleted}, {&s.queues, bucketQueues},
		{&s.unique, bucketUnique}, {&s.effects, bucketEffects}, {&s.keys, bucketKeys}, {&s.expiry, bucketExpiry},
	}
	s.tables = make([]table, len(stores))
	for i, b := range stores {
		s.tables[i] = table{root: root, name: b.name}
		*b.to = &s.tables[i]
	}
	for _, b := range [...]*table{s.jobs, s.payloads, s.ready} {
		b.fill = sequentialFill
	}
	return s, s.present(root)
}

// present requires that the buckets of all tables are there. It opens them only if their number is too small.
func (s *store) present(root *bbolt.Bucket) error {
	found := 0
	c := root.Cursor()
	for k, v := c.First(); k != nil && v == nil && found < len(buckets); k, v = c.Next() {
		found++
	}
	for i := 0; i < len(s.tables) && found < len(buckets); i++ {
		if name := s.tables[i].name; root.Bucket(name) == nil {
			return fmt.Errorf("%w: bucket %q is missing", pawl.ErrCorrupt, name)
		}
	}
	return nil
}

// table finds a table by the name of its bucket, which must be one of the above.
func (s *store) table(name []byte) *table {
	i := slices.IndexFunc(s.tables, func(b table) bool { return bytes.Equal(b.name, name) })
	return &s.tables[i]
}

// stored is a job as read in the transaction.
type stored struct {
	*pawl.Envelope
	apart int // size of the payload in bucketPayloads, 0 if it is in the record
	recent
}

func (j stored) flags() (f flags) {
	if j.apart != 0 {
		f |= hasPayload
	}
	if j.Failures != j.recent.n {
		f |= hasHistory
	}
	if j.Key != "" {
		f |= hasKey
	}
	if j.IdempotencyKey != "" || j.UniqueKey != "" || !j.Deadline.IsZero() || j.Retain != 0 || j.Group != "" || j.Cost > 1 || j.Cancelled {
		f |= hasMore
	}
	if j.FairTag != 0 {
		f |= hasTag
	}
	return f
}

// record reads the record of a job, without a separate payload. The result is valid during the
// transaction.
func (s *store) record(id pawl.ID) (stored, error) {
	return parseStored(id, s.jobs.Get(id[:]))
}

// listed is like record, for readers. If the file is too short for a record, listed returns an error for that job
// instead of faulting.
func (s *store) listed(id pawl.ID) (stored, error) {
	b := s.jobs.Get(id[:])
	if int64(len(b)) > s.jobs.Tx().Size() {
		return stored{}, fmt.Errorf("job %s: %w: a record of %d bytes", id, pawl.ErrCorrupt, len(b))
	}
	return parseStored(id, b)
}

func parseStored(id pawl.ID, b []byte) (stored, error) {
	if b == nil {
		return stored{}, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	failures, record, err := cutRecent(id, b)
	if err != nil {
		return stored{}, fmt.Errorf("job %s: %w", id, err)
	}
	e, apart, err := driver.ParseRecord(record)
	if err != nil {
		return stored{}, fmt.Errorf("job %s: %w", id, err)
	}
	if e.ID != id {
		return stored{}, fmt.Errorf("job %s: %w: the record is that of job %s", id, pawl.ErrCorrupt, e.ID)
	}
	j := stored{Envelope: e, apart: apart}
	return j, j.catchUp(failures)
}

// payload copies a separate payload.
func (s *store) payload(id pawl.ID) ([]byte, error) {
	sealed := s.payloads.Get(id[:])
	if sealed == nil {
		return nil, fmt.Errorf("job %s: %w: its payload is missing", id, pawl.ErrCorrupt)
	}
	b, err := unseal(id[:], sealed, -1)
	if err != nil {
		return nil, fmt.Errorf("payload of job %s: %w", id, err)
	}
	return bytes.Clone(b), nil
}

// failures reads the history of a job, oldest entry first.
func (s *store) failures(j stored) ([]pawl.Failure, error) {
	all, err := s.rowsOfHistory(j.ID)
	if err != nil {
		return nil, err
	}
	if len(all) != min(j.Failures-j.recent.n, pawl.HistoryKeepHead+pawl.HistoryKeepTail) {
		return nil, fmt.Errorf("job %s: %w: %d entries of its history are there", j.ID, pawl.ErrCorrupt, len(all))
	}
	all = append(all, j.recent.list()...)
	if more := len(all) - pawl.HistoryKeepHead - pawl.HistoryKeepTail; more > 0 {
		all = slices.Delete(all, pawl.HistoryKeepHead, pawl.HistoryKeepHead+more)
	}
	return all, nil
}

// rowsOfHistory reads the rows of a job in bucketHistory.
func (s *store) rowsOfHistory(id pawl.ID) ([]pawl.Failure, error) {
	var all []pawl.Failure
	c := s.history.Cursor()
	for k, v := c.Seek(id[:]); bytes.HasPrefix(k, id[:]); k, v = c.Next() {
		f, err := parseFailure(k, v)
		if err == nil && len(k) != len(id)+4 {
			err = fmt.Errorf("%w: a key of %d bytes", pawl.ErrCorrupt, len(k))
		}
		if err != nil {
			return nil, fmt.Errorf("history of job %s: %w", id, err)
		}
		all = append(all, f)
	}
	return all, nil
}

// lastFailure reads the newest entry of the history of a job.
func (s *store) lastFailure(j stored) ([]pawl.Failure, error) {
	if n := j.recent.n; n > 0 {
		return j.recent.list()[n-1:], nil
	}
	key := historyKey(nil, j.ID, j.Failures-1)
	sealed := s.history.Get(key)
	if sealed == nil {
		return nil, fmt.Errorf("history of job %s: %w: its last entry is missing", j.ID, pawl.ErrCorrupt)
	}
	f, err := parseFailure(key, sealed)
	if err != nil {
		return nil, fmt.Errorf("history of job %s: %w", j.ID, err)
	}
	return []pawl.Failure{f}, nil
}

// job reads a whole job and copies it out of the transaction.
func (s *store) job(id pawl.ID) (*pawl.Envelope, error) {
	j, err := s.whole(id)
	return j.Envelope, err
}

// whole is like job, with what only the record says.
func (s *store) whole(id pawl.ID) (stored, error) {
	j, err := s.listed(id)
	if err != nil {
		return stored{}, err
	}
	at, err := s.where(j.Envelope)
	if err == nil {
		j.Envelope, err = s.complete(j, at, driver.AllParts)
	}
	if err != nil {
		return stored{}, err
	}
	return j, nil
}

// complete reads parts of a job besides its record, and copies them out of the transaction.
func (s *store) complete(j stored, at place, parts driver.Parts) (e *pawl.Envelope, err error) {
	e = j.Envelope
	e.State, e.Signature = at.state, bytes.Clone(e.Signature)
	switch {
	case parts&driver.PartPayload == 0:
		e.Payload = nil
	case j.apart == 0:
		e.Payload = bytes.Clone(e.Payload)
	default:
		if e.Payload, err = s.payload(e.ID); err != nil {
			return nil, err
		}
		if len(e.Payload) != j.apart {
			return nil, fmt.Errorf("job %s: %w: a payload of %d bytes in place of %d", e.ID, pawl.ErrCorrupt, len(e.Payload), j.apart)
		}
	}
	if at.state != pawl.Leased && at.state != pawl.Completed && s.after.Any(s.others()) {
		needed, err := driver.ReadPrerequisites(s.others(), e.ID)
		if err != nil {
			return nil, err
		}
		driver.SetPrerequisites(e, needed)
	}
	switch {
	case e.Failures == 0:
	case parts&driver.PartHistory != 0:
		if e.History, err = s.failures(j); err != nil {
			return nil, err
		}
	case parts&driver.PartLastFailure != 0:
		if e.History, err = s.lastFailure(j); err != nil {
			return nil, err
		}
	}
	if at.state == pawl.Leased {
		row, ok, err := s.lease(e.ID[:])
		if err == nil && !ok {
			err = fmt.Errorf("job %s: %w: its lease is found by one search and not by the next", e.ID, pawl.ErrCorrupt)
		}
		if err != nil {
			return nil, err
		}
		e.LeasedSince = row.since
		if e.HoldsKey, err = s.holdsKey(row.line.queue, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// lease reads the lease of a job. If there is none, ok is false.
func (s *store) lease(id []byte) (row leaseRow, ok bool, err error) {
	sealed := s.leased.Get(id)
	if sealed == nil {
		return row, false, nil
	}
	row, err = parseLeaseRow(id, sealed)
	return row, err == nil, err
}

// place is the row that says where a job is.
type place struct {
	state pawl.State
	table *table
	key   []byte
	line  line
}

// where finds the one row that says where a job is. The record does not have this, so that
// leasing and promoting a job need not rewrite the record.
func (s *store) where(e *pawl.Envelope) (p place, err error) {
	ln, ok, err := s.line(e)
	if err != nil || !ok {
		return p, fmt.Errorf("job %s: %w: its queue %q or its kind %q is not in the file", e.ID, pawl.ErrCorrupt, e.Queue, e.Kind)
	}
	found := func(state pawl.State, b *table, key []byte) bool {
		row := b.Get(key)
		if row == nil || b != s.leased && ofAnother(e.ID, key, row) {
			return false
		}
		p = place{state, b, key, ln}
		return true
	}
	switch {
	case found(pawl.Leased, s.leased, e.ID[:]):
	case e.Death != nil && found(pawl.Dead, s.failed, failedKey(nil, ln.queue, e.Death.At, e.Seq)):
	case e.Death != nil:
		return p, fmt.Errorf("job %s: %w: it is dead, and has no death", e.ID, pawl.ErrCorrupt)
	case !e.Completed.IsZero() && found(pawl.Completed, s.completed, completedKey(nil, e)):
	case found(pawl.Ready, s.ready, readyKey(nil, ln, e)):
	case found(pawl.Delayed, s.delayed, delayedKey(nil, e)):
	case e.IdempotencyKey != "" && found(pawl.Ready, s.delayed, heldKey(nil, effectKey(nil, e), ln, e)):
	case e.Key != "" && found(pawl.Ready, s.delayed, blockedKey(nil, ln, e)):
	case e.Key != "" && found(pawl.Ready, s.delayed, turnKey(nil, ln.queue, e)):
	case found(pawl.Ready, s.delayed, awaitKey(nil, readyKey(nil, ln, e))):
	default:
		return p, fmt.Errorf("job %s: %w: it is in no state", e.ID, pawl.ErrCorrupt)
	}
	return p, nil
}

// ofAnother reports whether a sound row in a state bucket begins with the ID of another job. Only damage leads to
// such a row. A damaged row counts as the row of this job.
func ofAnother(id pawl.ID, key, row []byte) bool {
	if bytes.HasPrefix(row, id[:]) {
		return false
	}
	_, err := unseal(key, row, -1)
	return err == nil
}
