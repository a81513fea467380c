package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
)

// Queue is a job queue in one bbolt file. It implements [pawl.Queue]. Its methods are safe for
// concurrent use.
type Queue struct {
	reader
	opts      Options
	shared    bool // the database belongs to the app
	scheduler *scheduler
	seq       atomic.Uint64 // the last assigned enqueue sequence
	sessions  sessions
	recovery  Recovery
	close     sync.Once
	closeErr  error
}

var _ pawl.Queue = (*Queue)(nil)

// Open opens the queue in the file at path. If the file does not exist, Open creates it for its
// owner alone (mode 0600). Open takes the file's lock, checks the pages of the file, makes the
// jobs of a dead process ready again, and starts the scheduler. If the last sync of the file
// failed, Open first replaces the file by a copy of everything that was acknowledged.
//
// Errors: [ErrLocked], [ErrNotQueue], [ErrInsecure], [pawl.ErrNewerFormat], [ErrDisk],
// [pawl.ErrCorrupt], [pawl.ErrInvalid] for a bad option, and errors of the file system. A
// failed Open leaves no lock, no goroutine and no temporary file.
func Open(path string, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	db, g, err := openFile(path, o)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", path, err)
	}
	q, err := newQueue(db, g, o, false)
	if err != nil {
		_ = g.CloseDB(db)
		return nil, fmt.Errorf("open queue %s: %w", path, err)
	}
	q.path = path
	_ = register(db) // db is new, so this cannot fail
	return q, nil
}

// newQueue starts the queue in a database that has one. Shared says that the app runs its own
// transactions there.
func newQueue(db *bbolt.DB, g *dbfile.Guard, o Options, shared bool) (*Queue, error) {
	watch := &observer{Reporter: driver.Reporter{Logger: o.Logger, OnEvent: o.OnEvent, Collector: o.Collector, MaxCrashes: o.MaxCrashes}}
	meter := new(driver.Meter)
	q := &Queue{
		reader: reader{db: db, guard: g, path: db.Path(), freelist: true, now: o.Now, meter: meter},
		opts:   o,
		shared: shared,
		scheduler: &scheduler{
			db:       db,
			guard:    g,
			shared:   shared,
			intake:   newIntake(),
			leases:   newLeaseTable(o.Lease),
			log:      o.Logger,
			now:      o.Now,
			crashCap: o.MaxCrashes,
			observer: watch,
			meter:    meter,
			commitTx: (*bbolt.Tx).Commit,
			stop:     make(chan struct{}),
			stopped:  make(chan struct{}),
			turns:    turns{queues: make(map[queueNumber]*turn)},
		},
	}
	q.scheduler.seq = &q.seq
	q.scheduler.bound.max = o.MaxBytes
	err := q.view(context.Background(), func(s *store) error {
		q.seq.Store(s.jobs.Sequence())
		q.scheduler.awaits.Store(s.after.Any(s.others()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if q.recovery.Jobs, err = q.scheduler.takeOrphans(); err != nil {
		return nil, err
	}
	q.recovery.Clean = q.recovery.Jobs == 0 && (g == nil || shared || g.ClosedCleanly)
	if err := q.scheduler.declareLimits(o.Limits); err != nil {
		return nil, err
	}
	if g != nil {
		g.OnFound(q.scheduler.intake.ring)
	}
	go q.scheduler.run()
	return q, nil
}

// Abilities implements [driver.Able].
func (q *Queue) Abilities() pawl.Ability {
	return driver.Settings | pawl.Synced | pawl.Results | pawl.Groups | pawl.Cursors | pawl.RunNotes | pawl.OrderedKeys | pawl.Prerequisites | pawl.FairKeys | pawl.BoundedQueues | pawl.SharedPools
}

// Close stops the queue. A blocked Fetch returns [pawl.ErrClosed]. Accepted operations are
// completed and answered, and all others return ErrClosed. When Close returns, no goroutine of
// the queue runs and the file is unlocked. Stop workers first: jobs that are still leased stay
// leased, and the next Open takes them back as if the process had crashed.
//
// Close returns [ErrReplaced] if the path no longer leads to the file, and [ErrOverwritten] if
// another program wrote to the file. In both cases it writes nothing.
func (q *Queue) Close() error {
	q.close.Do(func() {
		s := q.scheduler
		s.intake.refuse(pawl.ErrClosed)
		close(s.stop)
		<-s.stopped
		if q.shared {
			unregister(q.db)
			q.guard.Close()
			return
		}
		lost := q.guard.Content()
		if lost == nil {
			lost = q.guard.Place()
		}
		if s.fatal == nil && lost == nil {
			syncFreelist(q.db, q.guard, s.meter, q.Now())
		}
		unregister(q.db)
		q.closeErr = errors.Join(lost, q.guard.CloseDB(q.db))
	})
	return q.closeErr
}

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	op, bytes, err := q.prepare(jobs)
	if err != nil {
		return nil, err
	}
	op.bounded = true
	err = q.scheduler.intake.do(ctx, op, bytes)
	if err != nil && !errors.Is(err, pawl.ErrUnknownOutcome) {
		return nil, err
	}
	return op.results(), err
}

// prepare checks and encodes jobs outside the transaction.
func (q *Queue) prepare(jobs []*pawl.Envelope) (op *enqueue, bytes int, err error) {
	if _, err := driver.CheckBatch(jobs, q.opts.MaxPayload); err != nil {
		return nil, 0, err
	}
	seq := q.seq.Add(uint64(len(jobs))) - uint64(len(jobs))
	op, bytes = newEnqueue(jobs, q.opts.Now(), seq)
	return op, bytes, nil
}

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	if cut := r.Max - maxGroup; cut > 0 {
		r.Max, r.Ahead = maxGroup, max(0, r.Ahead-cut)
	}
	defer q.sessions.end(q.sessions.begin(&session{queues: r.Queues, kinds: r.Kinds}))
	for {
		f, err := q.scheduler.intake.fetch(ctx, r)
		if err != nil {
			return nil, err
		}
		leases := make([]*pawl.Lease, 0, len(f.jobs))
		for _, job := range f.jobs {
			l, damage := job.lease(f.durable, q.opts.Lease)
			if damage != nil {
				// After an error the lease expires. The error must not affect the other jobs.
				op := &abandonDamaged{holding: holding{job.row.id, job.grant.token}, damage: damage}
				err = q.do(context.WithoutCancel(ctx), op)
				continue
			}
			leases = append(leases, l)
		}
		q.emitFetched(leases, f.at)
		if len(leases) > 0 {
			return leases, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// emitFetched emits the events of jobs that were leased at a time.
func (q *Queue) emitFetched(leases []*pawl.Lease, at time.Time) {
	watch := q.scheduler.observer
	watch.Count(driver.Totals{Changes: int64(len(leases))})
	if !watch.Listened() {
		return
	}
	for _, l := range leases {
		job := *l.Envelope
		job.Payload = nil
		e := pawl.Event{Type: pawl.EventFetched, At: at, Job: &job}
		if !l.BackoffSince.IsZero() {
			e.Backoff = max(0, at.Sub(l.BackoffSince))
		}
		watch.Emit(e)
	}
}

// Path returns the path of the queue's file, as passed to Open.
func (r *reader) Path() string { return r.path }

// Now returns the time by the queue's clock.
func (q *Queue) Now() time.Time { return q.opts.Now() }

// MaxPayload returns the largest payload of a job in bytes, as set by the options.
func (q *Queue) MaxPayload() int { return q.opts.MaxPayload }

// Done returns a channel that is closed when the queue has stopped because it was closed or
// poisoned. [Queue.Err] then returns the reason.
func (q *Queue) Done() <-chan struct{} { return q.scheduler.stopped }

// Err returns nil until the channel of [Queue.Done] is closed. Then it returns what any call
// returns: [pawl.ErrClosed], or an error that matches [pawl.ErrPoisoned] with its cause.
func (q *Queue) Err() error {
	select {
	case <-q.scheduler.stopped:
		return q.scheduler.intake.reason()
	default:
		return nil
	}
}

// LastCommit returns when the last commit of the queue ended, and its error. The error comes from
// the system: a full disk, for example, or a failed sync. The time is zero before the first commit.
// An operation that changes nothing, or that is refused before the commit, makes no commit.
func (q *Queue) LastCommit() (at time.Time, err error) { return q.scheduler.last.get() }

func (q *Queue) do(ctx context.Context, op operation) error {
	return q.scheduler.intake.do(ctx, op, 0)
}

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, given ...pawl.Settlement) error {
	if err := driver.CheckSettle(given); err != nil {
		return err
	}
	op := &settlements{each: make([]settle, len(given))}
	bytes := 0
	for i := range given {
		op.each[i] = q.settle(&given[i])
		bytes += op.each[i].bytes(given[i].Lease.Headers)
	}
	if err := q.scheduler.intake.do(ctx, op, bytes); err != nil {
		return err
	}
	return driver.SettleErrors(given, op.errs)
}

// Extend implements [pawl.Queue]. It does not write to the disk.
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	op := &extend{leases: make([]holding, len(leases))}
	for i, l := range leases {
		op.leases[i] = holding{l.ID, l.Token}
	}
	if err := q.do(ctx, op); err != nil {
		return nil, err
	}
	for _, i := range op.lost {
		lost = append(lost, leases[i])
	}
	return lost, nil
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
