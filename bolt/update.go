package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
)

// slowAfter is how long an app's transaction may keep others waiting before a warning is logged.
const slowAfter = time.Second

// plainCall is the likeliest cause, for that warning.
const plainCall = "inside a transaction only EnqueueTx, AckTx, CancelTx and MutateTx may be called, anything else waits for the transaction's own end"

// Update runs fn in a write transaction of the file, for an app that keeps its own data there
// in its own top-level buckets. When fn returns nil, Update commits and syncs its writes before
// it returns. When fn returns an error or panics, nothing is written.
//
// Inside fn, only [Queue.EnqueueTx], [Queue.AckTx], [Queue.CancelTx] and [Queue.MutateTx] may change
// the queue, with the tx passed to fn. Every other call waits for the writer, which waits for fn. If
// that takes a second, Update logs a warning. A call returns when its context ends. Fn must be short,
// since all callers wait for it. It must not commit or roll back tx, or close the queue. A function
// passed to tx.OnCommit runs on the queue's own goroutine: it must not call the queue or panic.
//
// Update returns the error of fn unchanged; [pawl.ErrNotAccepted] if ctx ended before fn began;
// [ErrDisk] if the disk refused the commit; or the errors of a failed sync, as every call does.
func (q *Queue) Update(ctx context.Context, fn func(tx *bbolt.Tx) error) error {
	u := &update{txs: make(chan *bbolt.Tx), done: make(chan error, 1)}
	c := &call{op: u, done: make(chan struct{})}
	if err := q.scheduler.intake.offer(ctx, c); err != nil {
		return err
	}
	withdrawal := ctx.Done()
	for {
		select {
		case tx := <-u.txs:
			u.run(q.guard, tx, fn)
		case <-c.done:
			return c.err
		case <-withdrawal:
			if c.stage.CompareAndSwap(offered, withdrawn) {
				q.scheduler.intake.ring()
				return driver.NotAccepted(ctx)
			}
			withdrawal = nil
		}
	}
}

// update is an app's transaction. It runs on the caller's goroutine while the scheduler waits, so
// that a panic, a stack trace, or a t.FailNow occurs on that goroutine.
type update struct {
	txs  chan *bbolt.Tx
	done chan error // the result of fn
}

var errUnfinished = errors.New("the function of Update did not return")

// run calls fn and reports to the scheduler how fn ended, even if it panics.
func (u *update) run(g *dbfile.Guard, tx *bbolt.Tx, fn func(*bbolt.Tx) error) {
	err := errUnfinished
	defer func() { u.done <- err }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer g.RecoverFault(&err)
	err = fn(tx)
}

// The scheduler runs an update by itself, so it never calls check and apply.
func (u *update) check(*txn) error { panic("bolt: an update is no part of a group") }
func (u *update) apply(*txn)       { panic("bolt: an update is no part of a group") }

// update gives the app a write transaction. The error is fatal.
func (s *scheduler) update(c *call, u *update) error {
	defer s.keyRows.forget() // the function may change rows of keys
	err := s.transact(func(t *txn) error {
		tx := t.jobs.Tx()
		s.updateTx.Store(tx)
		defer s.updateTx.Store(nil)
		ended := false
		tx.OnCommit(func() { ended = true })
		u.txs <- tx
		t.changed = true
		err := s.await(u)
		if err == nil && tx.DB() == nil {
			what := "ended the transaction itself; unless a commit of its own failed, nothing was stored"
			if ended {
				what = "committed the transaction itself, so it is stored"
			}
			err = &pawl.InvalidError{Field: "function of Update", Reason: "it " + what + "; leave that to Update"}
		}
		if err == nil { // fn may have taken long
			if found := s.guard.Content(); found != nil {
				err = dbfile.Faulted{Err: found}
			}
		}
		return err
	})
	var refused undone
	switch {
	case errors.As(err, &refused):
		c.answer(refused.error)
	case err != nil:
		return err
	default:
		c.answer(nil)
	}
	return nil
}

// await returns the result of the function of an update. It logs a warning once the function
// keeps others waiting.
func (s *scheduler) await(u *update) error {
	look := time.NewTicker(slowAfter)
	defer look.Stop()
	for {
		select {
		case err := <-u.done:
			return err
		case <-look.C:
			if n := s.intake.waiting(); n > 0 {
				s.log.Warn("a function of Update keeps callers waiting; "+plainCall, "since", slowAfter, "calls", n)
				return <-u.done
			}
		}
	}
}

// EnqueueTx stores jobs as part of an app's transaction. The jobs are in the queue if the
// transaction commits. EnqueueTx returns the results that the commit will have, as [pawl.Enqueuer]
// describes.
//
// [pawl.ErrInvalid], [pawl.ErrPayloadTooLarge], [pawl.ErrBatchTooLarge], [pawl.ErrConflict],
// [pawl.ErrQueueFull] and [ErrFull] leave the transaction unchanged. After any other error the app must roll it back.
func (q *Queue) EnqueueTx(tx *bbolt.Tx, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	op, _, err := q.prepare(jobs)
	if err != nil {
		return nil, err
	}
	op.bounded = true
	if err := q.within(tx, op, nil); err != nil {
		return nil, fmt.Errorf("enqueue in a transaction: %w", err)
	}
	return op.results(), nil
}

// In returns an enqueuer for [pawl.Kind.Enqueue] that works within an app's transaction. See
// [Queue.EnqueueTx]. It ignores the context.
func (q *Queue) In(tx *bbolt.Tx) pawl.Enqueuer { return within{q, tx} }

type within struct {
	q  *Queue
	tx *bbolt.Tx
}

// Enqueue implements [pawl.Enqueuer].
func (w within) Enqueue(_ context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return w.q.EnqueueTx(w.tx, jobs...)
}

// AckTx acks a job as part of an app's transaction, so that the job's effect and its end are
// atomic. If the transaction commits, the job has succeeded, whatever its handler returns
// afterwards. If not, the handler's return value decides. In a handler, l is job.Lease.
//
// [pawl.ErrLeaseLost] means that another holder has the job by now, or that it is leased from
// another queue. [pawl.ErrConflict] means that the effect has already taken place, under the
// same idempotency key. In both cases roll back by returning the error.
func (q *Queue) AckTx(tx *bbolt.Tx, l *pawl.Lease) error {
	if l == nil || l.Envelope == nil {
		return &pawl.InvalidError{Field: "lease", Reason: "there is none; a handler has it from its worker, as job.Lease"}
	}
	s := l.Ack()
	op := &ackOnce{settleOne{settle: q.settle(&s)}}
	if err := q.within(tx, op, func() { driver.MarkSettled(l) }); err != nil {
		return fmt.Errorf("ack in a transaction: %w", err)
	}
	return nil
}

// ackOnce is an ack that first checks whether another job completed the effect.
type ackOnce struct{ settleOne }

func (op *ackOnce) check(t *txn) error {
	if err := op.settleOne.check(t); err != nil || op.row.flags&hasMore == 0 {
		return err
	}
	j, err := t.record(op.id)
	if err != nil || j.IdempotencyKey == "" {
		return err
	}
	effect, err := t.effect(effectKey(nil, j.Envelope))
	if err == nil && effect.done.After(t.now) {
		return fmt.Errorf("job %s: %w: the effect of its idempotency key has taken place", op.id, pawl.ErrConflict)
	}
	return err
}

// CancelTx cancels a job as part of an app's transaction. See [Queue.Cancel].
func (q *Queue) CancelTx(tx *bbolt.Tx, id pawl.ID) error {
	if err := q.within(tx, &changeOne{Change: &pawl.Change{Verb: pawl.VerbCancel}, id: id}, nil); err != nil {
		return fmt.Errorf("cancel in a transaction: %w", err)
	}
	return nil
}

// within runs an operation in an app's transaction. The scheduler gets the consequences when
// the transaction commits.
func (q *Queue) within(tx *bbolt.Tx, op operation, committed func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer q.guard.RecoverFault(&err)
	switch {
	case tx.DB() != q.db:
		return &pawl.InvalidError{Field: "transaction", Reason: "it is over, or that of another database"}
	case !tx.Writable():
		return &pawl.InvalidError{Field: "transaction", Reason: "it is for reading only"}
	}
	if err := q.scheduler.intake.reason(); err != nil && q.scheduler.updateTx.Load() != tx {
		return err // a running function of Update ends as usual
	}
	t, err := begin(tx, q.opts.Now(), q.scheduler.settings())
	if err != nil {
		return err
	}
	if err := op.check(t); err != nil {
		return err
	}
	op.apply(t)
	if err := t.finish(); err != nil {
		return err
	}
	changed := t.takeNews()
	if len(t.renewed) > 0 {
		q.scheduler.intake.renew(t.renewed)
	}
	tx.OnCommit(func() {
		if committed != nil {
			committed()
		}
		q.scheduler.observer.Count(t.counted.Totals)
		q.scheduler.meter.Add(t.now, &t.counted, false)
		q.scheduler.observer.Emit(t.events...) // before the scheduler wakes up and emits more events
		q.scheduler.observer.ended(t)
		q.scheduler.damage.report(q.scheduler.log, t.damage)
		q.scheduler.intake.note(note{t.ended, t.cancelled, t.cleared, nil, changed, t.leftBlocked})
	})
	return nil
}
