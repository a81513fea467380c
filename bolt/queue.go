package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Queue is a job queue in one bbolt file. It implements [pawl.Queue]; its methods
// may be called from any goroutine.
type Queue struct {
	reader
	opts      Options
	scheduler *scheduler
	seq       atomic.Uint64 // the last enqueue sequence that was given out
	close     sync.Once
	closeErr  error
}

var _ pawl.Queue = (*Queue)(nil)

// Open opens the queue in the file at path, and creates the file when there is
// none, for its owner alone (mode 0600). It takes the file's lock, makes the jobs of
// a process that died ready again, and starts the scheduler.
//
// Errors: [ErrLocked], [ErrNotQueue], [ErrNewerFormat], [ErrDisk], [pawl.ErrCorrupt],
// [pawl.ErrInvalid] for a bad option, and those of the file system. A failed Open
// leaves no lock, no goroutine and no temporary file.
func Open(path string, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	db, err := openFile(path, o.LockTimeout)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", path, err)
	}
	q, err := newQueue(db, o)
	if err != nil {
		_ = closeDB(db)
		return nil, fmt.Errorf("open queue %s: %w", path, err)
	}
	return q, nil
}

func newQueue(db *bbolt.DB, o Options) (*Queue, error) {
	q := &Queue{
		reader: reader{db: db, path: db.Path()},
		opts:   o,
		scheduler: &scheduler{
			db:         db,
			intake:     newIntake(),
			leases:     newLeaseTable(o.Lease),
			log:        o.Logger,
			now:        o.Now,
			maxCrashes: o.MaxCrashes,
			commitTx:   (*bbolt.Tx).Commit,
			stop:       make(chan struct{}),
			stopped:    make(chan struct{}),
			turns:      turns{last: make(map[queueNumber]uint64)},
			seen:       make(map[string]bool),
		},
	}
	if err := q.scheduler.takeOrphans(); err != nil {
		return nil, err
	}
	err := q.view(context.Background(), func(s *store) error {
		q.seq.Store(s.jobs.Sequence())
		return nil
	})
	if err != nil {
		return nil, err
	}
	go q.scheduler.run()
	return q, nil
}

// Close stops the queue: a blocked Fetch gets [pawl.ErrClosed], operations that
// were accepted are completed and answered, all others get ErrClosed. When it
// returns no goroutine of the queue runs and the file is unlocked. Stop workers
// first: jobs that are still leased stay so, and the next Open takes them back as if
// the process had crashed.
func (q *Queue) Close() error {
	q.close.Do(func() {
		s := q.scheduler
		s.intake.refuse(pawl.ErrClosed)
		close(s.stop)
		<-s.stopped
		if s.fatal == nil {
			syncFreelist(q.db)
		}
		q.closeErr = closeDB(q.db)
	})
	return q.closeErr
}

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error {
	if len(jobs) == 0 {
		return nil
	}
	op, bytes, err := q.newEnqueue(jobs)
	if err != nil {
		return err
	}
	err = q.scheduler.intake.do(ctx, op, bytes)
	if err == nil || errors.Is(err, pawl.ErrUnknownOutcome) {
		for i, j := range op.jobs {
			*jobs[i] = *j.Envelope
		}
	}
	return err
}

// newEnqueue checks and encodes jobs, which the transaction then need not do. It
// works on copies: what is not accepted is not changed.
func (q *Queue) newEnqueue(jobs []*pawl.Envelope) (*enqueue, int, error) {
	bytes := 0
	for _, j := range jobs {
		if err := j.Validate(); err != nil {
			return nil, 0, err
		}
		if len(j.Payload) > q.opts.MaxPayload {
			return nil, 0, fmt.Errorf("%w: %d bytes, this queue takes %d; enqueue a reference to the data, or raise Options.MaxPayload",
				pawl.ErrPayloadTooLarge, len(j.Payload), q.opts.MaxPayload)
		}
		bytes += len(j.Payload)
	}
	if len(jobs) > pawl.MaxBatchJobs || len(jobs) > 1 && bytes > pawl.MaxBatchBytes {
		return nil, 0, fmt.Errorf("%w: %d jobs of %d bytes, at most %d jobs of %d bytes fit in one commit; split it",
			pawl.ErrBatchTooLarge, len(jobs), bytes, pawl.MaxBatchJobs, pawl.MaxBatchBytes)
	}
	now := q.opts.Now()
	seq := q.seq.Add(uint64(len(jobs))) - uint64(len(jobs))
	op := &enqueue{jobs: make([]newJob, len(jobs))}
	given := make(map[pawl.ID]bool)
	pointers := make(map[*pawl.Envelope]bool, len(jobs))
	for i, j := range jobs {
		seq++
		op.jobs[i] = newJobFrom(*j, now, seq)
		if pointers[j] || given[j.ID] {
			return nil, 0, fmt.Errorf("job %s: %w: it is twice in one batch", j.ID, pawl.ErrConflict)
		}
		pointers[j] = true
		if !j.ID.IsZero() {
			given[j.ID] = true
		}
	}
	size := 0
	for _, j := range op.jobs {
		size += len(j.record) + len(j.payload)
	}
	return op, size, nil
}

// largePayload is the size in bytes from which a payload lies apart from its
// record, where it is written once: the record of a job is rewritten when the job
// moves, and its neighbours on the page with it.
const largePayload = 1 << 10

func newJobFrom(e pawl.Envelope, now time.Time, seq uint64) newJob {
	j := newJob{Envelope: &e, fresh: e.ID.IsZero()}
	if j.fresh {
		e.ID = pawl.NewID(now)
	}
	if e.Queue == "" {
		e.Queue = pawl.DefaultQueue
	}
	if e.Origin == "" {
		e.Origin = e.Queue
	}
	if e.Created.IsZero() {
		e.Created = now
	}
	if e.Delay > 0 {
		e.NotBefore = after(now, e.Delay)
	} else if !e.NotBefore.After(now) {
		e.NotBefore, j.ready = now, true
	}
	e.Delay = 0
	e.Seq = seq
	e.Attempts, e.Crashes, e.Failures, e.Death, e.History = 0, 0, 0, nil, nil
	e.State, e.LeasedSince = "", time.Time{}
	apart := 0
	if len(e.Payload) >= largePayload {
		apart = len(e.Payload)
		j.payload = seal(e.ID[:], append(make([]byte, 0, apart+4), e.Payload...))
	}
	j.record = pawl.AppendRecord(nil, &e, apart)
	return j
}

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if r.Max < 1 {
		return nil, &pawl.InvalidError{Field: "Max", Reason: fmt.Sprintf("%d jobs were asked for, it must be 1 or more", r.Max)}
	}
	if r.Ahead < 0 {
		return nil, &pawl.InvalidError{Field: "Ahead", Reason: fmt.Sprintf("%d jobs cannot wait", r.Ahead)}
	}
	if cut := r.Max - maxGroup; cut > 0 {
		r.Max, r.Ahead = maxGroup, max(0, r.Ahead-cut)
	}
	if len(r.Queues) == 0 {
		r.Queues = []string{pawl.DefaultQueue}
	}
	r.Queues = slices.Clone(r.Queues) // a withdrawn fetch may be looked at once more
	for _, name := range r.Queues {
		if err := pawl.ValidQueue(name); err != nil {
			return nil, err
		}
	}
	for {
		f, err := q.scheduler.intake.fetch(ctx, r)
		if err != nil {
			return nil, err
		}
		leases := make([]*pawl.Lease, 0, len(f.jobs))
		for _, job := range f.jobs {
			e, damage := job.decode()
			if damage != nil {
				// An error leaves the lease to expire. It must not cost the others.
				err = q.do(context.WithoutCancel(ctx), &settle{id: job.id, token: job.token, how: condemn(damage)})
				continue
			}
			leases = append(leases, &pawl.Lease{Envelope: e, Token: job.token, Length: q.opts.Lease, Expires: f.expires})
		}
		if len(leases) > 0 {
			return leases, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (job fetched) decode() (*pawl.Envelope, error) {
	e, apart, err := pawl.ParseRecord(job.record)
	switch {
	case err != nil:
		return nil, fmt.Errorf("job %s: %w", job.id, err)
	case e.ID != job.id || apart != len(job.payload):
		return nil, fmt.Errorf("job %s: %w: its record does not fit its row", job.id, pawl.ErrCorrupt)
	case apart != 0:
		e.Payload = job.payload
	}
	return e, nil
}

func (q *Queue) do(ctx context.Context, op operation) error {
	return q.scheduler.intake.do(ctx, op, 0)
}

func (q *Queue) settle(ctx context.Context, l *pawl.Lease, how verb) error {
	return q.do(ctx, &settle{id: l.ID, token: l.Token, how: how})
}

// Ack implements [pawl.Queue].
func (q *Queue) Ack(ctx context.Context, l *pawl.Lease) error {
	return q.settle(ctx, l, ack)
}

// Nack implements [pawl.Queue].
func (q *Queue) Nack(ctx context.Context, l *pawl.Lease, delay time.Duration, cause error) error {
	return q.settle(ctx, l, nack(delay, text(cause)))
}

// Abandon implements [pawl.Queue].
func (q *Queue) Abandon(ctx context.Context, l *pawl.Lease, reason pawl.Reason, cause error) error {
	return q.settle(ctx, l, abandon(reason, text(cause)))
}

func text(cause error) string {
	if cause == nil {
		return ""
	}
	return clip(cause.Error(), pawl.MaxErrorText)
}

// Release implements [pawl.Queue].
func (q *Queue) Release(ctx context.Context, l *pawl.Lease) error {
	return q.settle(ctx, l, release())
}

// Snooze implements [pawl.Queue].
func (q *Queue) Snooze(ctx context.Context, l *pawl.Lease, delay time.Duration) error {
	return q.settle(ctx, l, snooze(delay))
}

// Park implements [pawl.Queue].
func (q *Queue) Park(ctx context.Context, l *pawl.Lease) error {
	return q.settle(ctx, l, park())
}

// Unpark implements [pawl.Queue]. It works in portions: when it fails midway, the
// jobs counted are ready and the others still parked.
func (q *Queue) Unpark(ctx context.Context, kinds ...string) (int, error) {
	for _, kind := range kinds {
		if err := pawl.ValidKind(kind); err != nil {
			return 0, err
		}
	}
	moved := 0
	for _, kind := range kinds {
		for {
			op := &unpark{kind: kind, portion: unparkPortion}
			if err := q.do(ctx, op); err != nil {
				return moved, err
			}
			moved += op.moved
			if op.moved < op.portion {
				break
			}
		}
	}
	return moved, nil
}

// Extend implements [pawl.Queue]. It writes nothing to the disk.
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	op := &extend{leases: leases}
	if err := q.do(ctx, op); err != nil {
		return nil, err
	}
	return op.lost, nil
}

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (int, error) {
	reaped := 0
	for {
		op := &reap{leases: q.scheduler.leases, portion: reapPortion}
		if err := q.do(ctx, op); err != nil {
			return reaped, err
		}
		reaped += op.reaped
		if op.reaped < op.portion {
			return reaped, nil
		}
	}
}

// Retry takes a dead letter back to ready. Its history stays; its attempts start
// again from 0 unless they are to be kept. A job that is not dead gives
// [pawl.ErrConflict], one that is not there [pawl.ErrNotFound].
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return q.do(ctx, &revive{id: id, keepAttempts: keepAttempts})
}
