package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// patience is how long a transaction of the app's may keep others waiting before a
// warning is logged.
const patience = time.Second

// plainCall is what such a warning says about its likeliest cause.
const plainCall = "inside a transaction only EnqueueTx, AckTx, CancelTx and MutateTx may be called, anything else waits for the transaction's own end"

// Update runs fn in a write transaction of the file, for an app that keeps its own data
// there, in top-level buckets of its own. When fn returns nil, what it wrote is committed
// and synced before Update returns; when it returns an error or panics, nothing is.
//
// Inside fn only [Queue.EnqueueTx], [Queue.AckTx], [Queue.CancelTx] and [Queue.MutateTx] may be called of
// all that changes the queue, with the tx that fn was given: every other call waits for
// the writer, which waits for fn. Where that lasts for a second a warning is logged; a
// call whose context ends gets out of it. Fn is short, since all callers wait for it,
// and neither commits nor rolls back tx, nor closes the queue. What it gives to tx.OnCommit runs on the
// queue's own goroutine: it must neither call the queue nor panic.
//
// Errors: that of fn, as it is; [pawl.ErrNotAccepted] when ctx ended before fn began;
// [ErrDisk] when the disk refused the commit; and those of a failed sync, as for every
// call.
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
				return pawl.NotAccepted(ctx)
			}
			withdrawal = nil
		}
	}
}

// update is a transaction of the app's, on the caller's goroutine while the scheduler
// waits: a panic, a stack and a t.FailNow are where they belong.
type update struct {
	txs  chan *bbolt.Tx
	done chan error // what became of fn
}

var errUnfinished = errors.New("the function of Update did not return")

// run calls fn and tells the scheduler how it ended, also when it panics.
func (u *update) run(g *guard, tx *bbolt.Tx, fn func(*bbolt.Tx) error) {
	err := errUnfinished
	defer func() { u.done <- err }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer g.recoverFault(&err)
	err = fn(tx)
}

// check and apply are never called: the scheduler runs an update by itself.
func (u *update) check(*txn) error { panic("bolt: an update is no part of a group") }
func (u *update) apply(*txn)       { panic("bolt: an update is no part of a group") }

// update hands a transaction of its own to the app. The error is fatal.
func (s *scheduler) update(c *call, u *update) error {
	err := s.transact(func(t *txn) error {
		tx := t.jobs.Tx()
		s.lent.Store(tx)
		defer s.lent.Store(nil)
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
		if err == nil { // it may have taken long
			if found := s.guard.content(); found != nil {
				err = faulted{found}
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

// await returns what became of the function of an update. Once that keeps others waiting
// it says so.
func (s *scheduler) await(u *update) error {
	look := time.NewTicker(patience)
	defer look.Stop()
	for {
		select {
		case err := <-u.done:
			return err
		case <-look.C:
			if n := s.intake.waiting(); n > 0 {
				s.log.Warn("a function of Update keeps callers waiting; "+plainCall, "since", patience, "calls", n)
				return <-u.done
			}
		}
	}
}

// EnqueueTx stores jobs as part of a transaction of the app's: if it commits they are
// in the queue, together with what else it wrote. It completes the envelopes in place,
// as [pawl.Enqueuer] says. After an error other than [pawl.ErrInvalid],
// [pawl.ErrPayloadTooLarge], [pawl.ErrBatchTooLarge] and [pawl.ErrConflict], which leave
// the transaction as it was, it must be rolled back.
func (q *Queue) EnqueueTx(tx *bbolt.Tx, jobs ...*pawl.Envelope) error {
	if len(jobs) == 0 {
		return nil
	}
	op, _, err := q.prepare(jobs)
	if err != nil {
		return err
	}
	if err := q.within(tx, op, nil); err != nil {
		return fmt.Errorf("enqueue in a transaction: %w", err)
	}
	op.answer(jobs)
	return nil
}

// In is what [pawl.Kind.Enqueue] needs to enqueue within a transaction of the app's; see
// [Queue.EnqueueTx]. The context is not looked at.
func (q *Queue) In(tx *bbolt.Tx) pawl.Enqueuer { return within{q, tx} }

type within struct {
	q  *Queue
	tx *bbolt.Tx
}

// Enqueue implements [pawl.Enqueuer].
func (w within) Enqueue(_ context.Context, jobs ...*pawl.Envelope) error {
	return w.q.EnqueueTx(w.tx, jobs...)
}

// AckTx acks a job as part of a transaction of the app's, so that its effect and its end
// are one: if the transaction commits the job has succeeded, whatever its handler
// returns afterwards; if it does not, the handler's return decides. In a handler l is
// job.Lease.
//
// [pawl.ErrLeaseLost] says that the job is somebody else's by now, or is leased from
// another queue, and
// [pawl.ErrConflict] that its effect has taken place already, under the same
// idempotency key: roll back then, by returning the error.
func (q *Queue) AckTx(tx *bbolt.Tx, l *pawl.Lease) error {
	if l == nil || l.Envelope == nil {
		return &pawl.InvalidError{Field: "lease", Reason: "there is none; a handler has it from its worker, as job.Lease"}
	}
	s := l.Ack()
	op := &ackOnce{q.settle(&s)}
	if err := q.within(tx, op, l.MarkSettled); err != nil {
		return fmt.Errorf("ack in a transaction: %w", err)
	}
	return nil
}

// ackOnce is an ack that looks whether the effect was done by another job.
type ackOnce struct{ settle }

func (op *ackOnce) check(t *txn) error {
	if err := op.settle.check(t); err != nil || op.row.flags&hasMore == 0 {
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

// CancelTx cancels a job as part of a transaction of the app's; see [Queue.Cancel].
func (q *Queue) CancelTx(tx *bbolt.Tx, id pawl.ID) error {
	if err := q.within(tx, &changeOne{Change: &pawl.Change{Verb: pawl.VerbCancel}, id: id}, nil); err != nil {
		return fmt.Errorf("cancel in a transaction: %w", err)
	}
	return nil
}

// within runs an operation in a transaction of the app's. What it means for the
// scheduler, and then committed, follows when the transaction commits.
func (q *Queue) within(tx *bbolt.Tx, op operation, committed func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer q.guard.recoverFault(&err)
	switch {
	case tx.DB() != q.db:
		return &pawl.InvalidError{Field: "transaction", Reason: "it is over, or that of another database"}
	case !tx.Writable():
		return &pawl.InvalidError{Field: "transaction", Reason: "it is for reading only"}
	}
	if err := q.scheduler.intake.reason(); err != nil && q.scheduler.lent.Load() != tx {
		return err // but a function of Update that has begun is to end as it would have
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
	tx.OnCommit(func() {
		if committed != nil {
			committed()
		}
		q.scheduler.observer.tell(t.events) // before the scheduler wakes up and makes more of them
		q.scheduler.intake.note(note{t.ended, t.cancelled, t.renewed, changed})
	})
	return nil
}
