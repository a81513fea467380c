package bolt

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Every operation but Extend and Fetch changes the digest when it is carried out, so an equal
// digest proves that a withdrawn operation was not carried out.
var operations = []struct {
	name string
	do   func(context.Context, *Queue, *pawl.Lease) error
}{
	{"enqueue", func(ctx context.Context, q *Queue, _ *pawl.Lease) error {
		return withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "new"})
	}},
	{"fetch", func(ctx context.Context, q *Queue, _ *pawl.Lease) error {
		_, err := q.Fetch(ctx, pawl.Request{Max: 9})
		return err
	}},
	{"ack", settling[0].end},
	{"nack", settling[1].end},
	{"abandon", settling[2].end},
	{"release", settling[3].end},
	{"snooze", settling[4].end},
	{"extend", func(ctx context.Context, q *Queue, l *pawl.Lease) error { _, err := q.Extend(ctx, l); return err }},
	{"reap", func(ctx context.Context, q *Queue, _ *pawl.Lease) error { _, err := q.Reap(ctx); return err }},
	{"retry", func(ctx context.Context, q *Queue, _ *pawl.Lease) error {
		for e := range q.Jobs(context.Background(), pawl.Filter{State: pawl.Dead}) {
			return q.Retry(ctx, e.ID, false)
		}
		return errors.New("no dead job")
	}},
}

// prepared is a queue with a job in each state, and the lease of the leased job.
func prepared(t *testing.T) (*Queue, *gate, *pawl.Lease) {
	t.Helper()
	q := openTest(t, nil)
	g := gateCommits(q)
	add(t, q, func(e *pawl.Envelope) { e.Kind = "dead" })
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	add(t, q, func(e *pawl.Envelope) { e.Kind = "delayed"; e.Delay = time.Hour })
	add(t, q, func(e *pawl.Envelope) { e.Kind = "leased" })
	l := leaseOne(t, q)
	add(t, q, func(e *pawl.Envelope) { e.Kind = "ready" })
	return q, g, l
}

func TestContextEndsBeforeTheCall(t *testing.T) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			q, _, l := prepared(t)
			before := digest(t, q)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := op.do(ctx, q, l)
			require.ErrorIs(t, err, pawl.ErrNotAccepted)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, before, digest(t, q))
		})
	}
}

// The scheduler is busy with another commit, so when its context ends the call still waits and
// is not accepted.
func TestContextEndsBeforeAcceptance(t *testing.T) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, g, l := prepared(t)
				release := g.occupy(q)
				ctx, cancel := context.WithCancel(t.Context())
				call := started(func() error { return op.do(ctx, q, l) })
				synctest.Wait()
				require.Empty(t, call, "it waits")
				cancel()
				err := <-call // while the commit is held
				require.ErrorIs(t, err, pawl.ErrNotAccepted)
				require.ErrorIs(t, err, context.Canceled)

				commits := g.commits.Load()
				release()
				synctest.Wait()
				require.Equal(t, commits, g.commits.Load(), "there was nothing to commit")
				require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1, Leased: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
			})
		})
	}
}

// The context ends while the call's own commit is being written: the caller gets the outcome.
func TestContextEndsAfterAcceptance(t *testing.T) {
	for _, op := range operations {
		if op.name == "extend" || op.name == "reap" {
			continue // they commit nothing
		}
		t.Run(op.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, g, l := prepared(t)
				before := digest(t, q)
				reached, leave := g.hold()
				ctx, cancel := context.WithCancel(t.Context())
				call := started(func() error { return op.do(ctx, q, l) })
				reached()
				cancel()
				synctest.Wait()
				require.Empty(t, call, "it waits for the commit")
				leave()
				require.NoError(t, <-call)
				require.NotEqual(t, before, digest(t, q))
			})
		})
	}
}

func TestNotAcceptedHasItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := q.Fetch(ctx, pawl.Request{Max: 1})
		require.ErrorIs(t, err, pawl.ErrNotAccepted)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))

		caused, cancelCause := context.WithCancelCause(t.Context())
		cancelCause(errBoom)
		err = withid.Enqueue(caused, q, &pawl.Envelope{Kind: "k"})
		require.ErrorIs(t, err, pawl.ErrNotAccepted)
		require.ErrorIs(t, err, context.Canceled, "the context's error")
		require.ErrorIs(t, err, errBoom, "and its cause")
	})
}

// Fetches are withdrawn, one after another, while a transaction serves them. Each job belongs
// to a fetch that succeeded, or is still ready.
func TestWithdrawnFetchLeavesNothingLeased(t *testing.T) {
	q := openTest(t, nil)
	const fetches, each = 20, 10
	leased, withdrawn := 0, 0
	for range 30 {
		var cancels []context.CancelFunc
		var calls []<-chan error
		var got [fetches][]*pawl.Lease
		for i := range fetches {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			calls = append(calls, started(func() (err error) {
				got[i], err = q.Fetch(ctx, pawl.Request{Max: each})
				return err
			}))
		}
		enqueued := started(func() error { return withid.Enqueue(t.Context(), q, newBatch(fetches*each)...) })
		for _, cancel := range slices.Backward(cancels) {
			runtime.Gosched()
			cancel()
		}
		require.NoError(t, <-enqueued)
		for i, call := range calls {
			if err := <-call; err != nil {
				require.ErrorIs(t, err, pawl.ErrNotAccepted)
				require.Empty(t, got[i])
				withdrawn++
			}
			leased += len(got[i])
		}
		require.Equal(t, leased, countsOf(t, q, pawl.DefaultQueue).Leased)
	}
	require.Positive(t, withdrawn)
}

func TestWithdrawnFetchDoesNotTakeTheNextJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		call := started(func() error { _, err := q.Fetch(ctx, pawl.Request{Max: 1}); return err })
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-call, pawl.ErrNotAccepted)
		id := add(t, q, nil).ID
		require.Equal(t, pawl.Ready, find(t, q, id).State)
	})
}
