package driver_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ending is a queue with one job, to which something happens right after each look at it.
type ending struct {
	driver.Waiters
	job    *pawl.Envelope // nil once it is gone
	next   []func()       // what happens after each look
	done   chan struct{}
	err    error // why the queue has stopped
	cancel func()
}

func (q *ending) Done() <-chan struct{} { return q.done }
func (q *ending) Err() error            { return q.err }

func (q *ending) stop(err error) {
	q.err = err
	close(q.done)
}

func (q *ending) Job(_ context.Context, id pawl.ID) (*pawl.Envelope, error) {
	if len(q.next) > 0 {
		defer func(fn func()) { q.next = q.next[1:]; fn() }(q.next[0])
	}
	if q.job == nil {
		return nil, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	e := *q.job
	return &e, nil
}

var awaited = pawl.Envelope{ID: pawl.ID{7}, Kind: "k", State: pawl.Leased, Payload: []byte("payload")}

// awaitIn waits for the job in virtual time, in which a lost end fails the test.
func awaitIn(t *testing.T, again time.Duration, happens ...func(q *ending)) (e *pawl.Envelope, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		job := awaited
		q := &ending{job: &job, done: make(chan struct{})}
		for _, fn := range happens {
			q.next = append(q.next, func() { fn(q) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		q.cancel = cancel
		e, err = q.Await(ctx, q, awaited.ID, again)
		require.False(t, q.Any(), "nobody waits")
	})
	return e, err
}

func succeeded(q *ending) {
	done := awaited
	done.Result = []byte("result")
	q.Report(pawl.Event{Type: pawl.EventSucceeded, At: time.Unix(9, 0), Job: &done})
}

// Rule: a call joins before it looks, so it misses no end that comes right after its look.
func TestAwaitMissesNoEnd(t *testing.T) {
	e, err := awaitIn(t, 0, func(q *ending) { q.job = nil; succeeded(q) })
	require.NoError(t, err)
	require.Equal(t, pawl.Completed, e.State)
	require.Equal(t, "result", string(e.Result))
	require.True(t, e.Completed.Equal(time.Unix(9, 0)))
	require.Nil(t, e.Payload)

	e, err = awaitIn(t, 0, func(q *ending) {
		q.job.State, q.job.Death = pawl.Dead, &pawl.Death{Reason: pawl.ReasonPermanent}
		q.Look(pawl.ID{1}, awaited.ID)
	})
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonPermanent, e.Death.Reason)
}

// Rule: an end that was reported before the queue stops, or before the context ends, reaches its call.
func TestAwaitOfAnEndBeforeTheQueueStops(t *testing.T) {
	for range 50 { // a select takes either
		e, err := awaitIn(t, 0, func(q *ending) { succeeded(q); q.stop(pawl.ErrClosed) })
		require.NoError(t, err)
		require.Equal(t, "result", string(e.Result))
		e, err = awaitIn(t, 0, func(q *ending) { succeeded(q); q.cancel() })
		require.NoError(t, err)
		require.Equal(t, "result", string(e.Result))
	}
}

// Rule: a call that waits when the queue stops gets the error of every call.
func TestAwaitWhenTheQueueStops(t *testing.T) {
	for _, why := range []error{pawl.ErrClosed, pawl.ErrPoisoned} {
		_, err := awaitIn(t, 0, func(q *ending) { q.Look(awaited.ID); q.stop(why) }, func(*ending) {})
		require.ErrorIs(t, err, why)
	}
}

// Rule: an end that was reported counts, though the job was retried before the call looks again.
func TestAwaitOfARetriedJob(t *testing.T) {
	e, err := awaitIn(t, 0, func(q *ending) {
		dead := awaited
		dead.Death = &pawl.Death{Reason: pawl.ReasonExhausted}
		q.Report(pawl.Event{Type: pawl.EventDied, Job: &dead, Cause: "broken"})
		q.Look(awaited.ID) // does not take the end away
	})
	require.NoError(t, err)
	require.Equal(t, pawl.Dead, e.State)
	require.Equal(t, "broken", e.LastError())
}

// Rule: a record that goes without a report was a success where one process has the queue. Among
// several processes nobody knows.
func TestAwaitOfARecordThatGoes(t *testing.T) {
	goes := func(q *ending) { q.job = nil; q.Look(awaited.ID) }
	e, err := awaitIn(t, 0, goes)
	require.NoError(t, err)
	require.Equal(t, pawl.Completed, e.State)
	_, err = awaitIn(t, time.Second, goes)
	require.ErrorIs(t, err, pawl.ErrNotFound)
	require.ErrorContains(t, err, "retention")
}

// Rule: where notifications may get lost, a call looks again after a time.
func TestAwaitLooksAgain(t *testing.T) {
	end := func(q *ending) { q.job.State = pawl.Completed }
	_, err := awaitIn(t, time.Minute, end)
	require.NoError(t, err)
	_, err = awaitIn(t, 0, end)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = awaitIn(t, 0, func(q *ending) { end(q); q.LookAll() })
	require.NoError(t, err)
}
