package bolt

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// enqueue stores new jobs.
type enqueue struct {
	jobs []newJob
	one  [1]newJob // backing array of jobs in the usual case of one job

	bounded bool // MaxBytes and the bounds on waiting jobs apply
}

// newJob is a job encoded outside the transaction.
type newJob struct {
	pawl.Envelope
	own     pawl.ID // its ID, unless it replaces another job
	encoded pawl.ID // the ID in record and payload
	record  []byte
	payload []byte // sealed, if it is stored apart from the record
	fresh   bool   // the ID was generated for this job, so no other job can have it
	ready   bool   // it has no delay, whatever the clock says in the transaction

	// Results of the check. A job with none of them is stored unchanged.
	existing bool // another job has its unique key, and ID is that of the other job
	replaces bool // it replaces the stored job with its ID
	dropped  bool // a later job of the batch replaces it
}

// newEnqueue prepares jobs that passed driver.CheckBatch. It needs no transaction. It works on
// copies, so the envelopes stay unchanged. Seq is the sequence before the first job's.
func newEnqueue(jobs []*pawl.Envelope, now time.Time, seq uint64) (op *enqueue, bytes int) {
	op = new(enqueue)
	if op.jobs = op.one[:]; len(jobs) > 1 {
		op.jobs = make([]newJob, len(jobs))
	}
	for i, e := range jobs {
		j := &op.jobs[i]
		j.Envelope, j.fresh = *e, e.ID.IsZero()
		j.ready = driver.Accept(&j.Envelope, now)
		seq++
		j.Seq, j.own = seq, j.ID
		j.encode()
		bytes += len(j.record) + len(j.payload)
	}
	return op, bytes
}

// largePayload is the size in bytes from which a payload is stored apart from its record. Such
// a payload is written once. A record is rewritten whenever its job moves, together with its
// neighbors on the page.
const largePayload = 1 << 10

func (j *newJob) encode() {
	apart := 0
	if len(j.Payload) >= largePayload {
		apart = len(j.Payload)
		j.payload = seal(j.ID[:], append(make([]byte, 0, apart+4), j.Payload...))
	}
	j.record = driver.AppendRecord(nil, &j.Envelope, apart)
	j.encoded = j.ID
}

func (op *enqueue) check(t *txn) error {
	var batch map[string]*newJob // jobs of the batch by unique key
	for i := range op.jobs {
		j := &op.jobs[i]
		j.ID, j.existing, j.replaces, j.dropped = j.own, false, false, false
		if j.UniqueKey != "" {
			if batch == nil {
				batch = make(map[string]*newJob)
			}
			if err := op.checkUnique(t, j, batch); err != nil {
				return err
			}
		}
		if j.Cost > 1 && !j.existing {
			if err := t.admitCost(&j.Envelope); err != nil {
				return err
			}
		}
		if !j.existing && !j.replaces && j.ID == j.own && !j.fresh && t.jobs.Get(j.ID[:]) != nil {
			return fmt.Errorf("job %s: %w: the queue holds a job of this ID already", j.ID, pawl.ErrConflict)
		}
	}
	if err := t.admitWaiting(op.jobs); err != nil {
		return err
	}
	if err := t.admit(op.jobs); err != nil || !op.bounded {
		return err
	}
	if err := t.admitBacklog(op.jobs); err != nil {
		return err
	}
	return t.bound.take(t.jobs.Tx(), sizeOf(op.jobs))
}

// checkUnique finds the job that has the unique key of j: an earlier job of the batch or a
// stored one.
func (op *enqueue) checkUnique(t *txn, j *newJob, batch map[string]*newJob) error {
	scope := j.Queue + "\x00" + j.Kind + "\x00" + j.UniqueKey // names contain no NUL
	earlier := batch[scope]
	id, at := pawl.ID{}, place{}
	if earlier != nil {
		id, at.state = earlier.ID, earlier.state(t.now)
	}
	if earlier == nil || !driver.BlockedBy(&j.Envelope, at.state) {
		batch[scope] = j
		if earlier != nil {
			return nil
		}
		holder, p, taken, err := t.uniqueHolder(&j.Envelope)
		if err != nil || !taken {
			return err
		}
		id, at = holder.ID, p
	}
	switch {
	case j.OnConflict == pawl.UseExisting:
		j.ID, j.existing = id, true
		if earlier == nil {
			delete(batch, scope)
		}
	case j.OnConflict == pawl.Replace && at.state != pawl.Leased:
		j.ID = id
		if earlier != nil {
			earlier.dropped, j.replaces = true, earlier.replaces
			batch[scope] = j
		} else {
			j.replaces = true
		}
	default:
		return fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", j.UniqueKey, pawl.ErrConflict, id, at.state)
	}
	return nil
}

func (op *enqueue) apply(t *txn) {
	for i := range op.jobs {
		j := &op.jobs[i]
		if j.existing || j.dropped {
			continue
		}
		event := pawl.EventEnqueued
		var before *pawl.Envelope
		var was pawl.State
		if j.replaces {
			event = pawl.EventReplaced
			if old, at, err := t.find(j.ID); err == nil { // its current place: an earlier job of the batch may have moved it
				before, was = old.Envelope, at.state
				t.unplace(old, at)
				t.leaveKey(old, false)
				t.remove(old.ID, old.flags())
			}
		}
		t.joins(&j.Envelope, before, was)
		if j.encoded != j.ID {
			j.encode()
		}
		t.insert(j, event)
	}
}

// state returns the state in which a transaction at the given time stores the job. A delay may
// have ended while the call waited for the transaction.
func (j *newJob) state(now time.Time) pawl.State {
	switch {
	case overdue(&j.Envelope, now):
		return pawl.Dead
	case j.ready || !j.NotBefore.After(now):
		return pawl.Ready
	}
	return pawl.Delayed
}

// results returns what became of the jobs after the check.
func (op *enqueue) results() []pawl.Enqueued {
	all := make([]pawl.Enqueued, len(op.jobs))
	for i := range op.jobs {
		all[i] = pawl.Enqueued{ID: op.jobs[i].ID, Existing: op.jobs[i].existing}
	}
	return all
}

// insert stores a new job.
func (t *txn) insert(n *newJob, event pawl.EventType) {
	j := stored{Envelope: &n.Envelope}
	if !n.Deadline.IsZero() {
		own := n.Envelope // if the job becomes dead here, this copy changes and the event of the enqueue does not
		j.Envelope = &own
	}
	if n.payload != nil {
		j.apart = len(j.Payload)
		t.put(t.payloads, j.ID[:], n.payload)
	}
	t.takeUnique(j)
	t.prerequire(j.Envelope)
	if n.ready && t.tagNew(&j) {
		t.rewrite(&j)
	} else {
		t.put(t.jobs, j.ID[:], n.record)
	}
	if j.Seq > t.jobs.Sequence() {
		t.fail(t.jobs.SetSequence(j.Seq))
	}
	t.emit(pawl.Event{Type: event, Job: &n.Envelope})
	if n.ready {
		t.placeReady(j)
	} else {
		t.place(j)
	}
}
