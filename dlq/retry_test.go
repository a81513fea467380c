package dlq_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a retried job is ready with its history; its attempts restart unless they are kept. The
// first error stops the rest.
func TestRetry(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		one, two, three := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")

		n, err := dlq.Retry(t.Context(), q, nil, one)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		job := get(t, q, one)
		require.Equal(t, pawl.Ready, job.State)
		require.Zero(t, job.Attempts)
		require.Len(t, job.History, 1)

		n, err = dlq.Retry(t.Context(), q, &dlq.RetryOptions{KeepAttempts: true}, two, one, three)
		require.ErrorIs(t, err, pawl.ErrConflict)
		require.Equal(t, 1, n)
		require.Equal(t, 1, get(t, q, two).Attempts)
		require.Equal(t, []pawl.ID{three}, list(t, q, pawl.Filter{}))
	})
}

// Rule: all matching dead jobs are retried once, and no others.
func TestRetryAll(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		for range 100 {
			makeDead(t, q, "mail", "a")
		}
		other := makeDead(t, q, "mail", "b")
		n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{Kind: "a"})
		require.NoError(t, err)
		require.Equal(t, 100, n)
		require.Equal(t, []pawl.ID{other}, list(t, q, pawl.Filter{}))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = dlq.RetryAll(ctx, q, nil, pawl.Filter{})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []pawl.ID{other}, list(t, q, pawl.Filter{}))
	})
}

// Rule: a dead job that must not become ready is reported, and the others are retried.
func TestRetryAllReportsJobsThatStayDead(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		first := makeDead(t, q, "mail", "a")
		taken := failDead(t, q, &pawl.Envelope{Kind: "a", Queue: "mail", UniqueKey: "u"}, pawl.ReasonExhausted, "no luck")
		last := makeDead(t, q, "mail", "a")
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "a", Queue: "mail", UniqueKey: "u"}))

		n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{})
		require.ErrorIs(t, err, pawl.ErrConflict)
		require.ErrorContains(t, err, taken.String())
		require.Equal(t, 2, n)
		require.Equal(t, []pawl.ID{taken}, list(t, q, pawl.Filter{}))
		for _, id := range []pawl.ID{first, last} {
			require.Equal(t, pawl.Ready, get(t, q, id).State)
		}
	})
}

// Rule: jobs that others retried or removed meanwhile are no error.
func TestRetryAllPassesOverWhatMoved(t *testing.T) {
	q := inMemory(t)
	ids := []pawl.ID{makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")}
	other := &shelf{queue: q, retry: func(id pawl.ID) error {
		switch id {
		case ids[0]:
			return q.Retry(t.Context(), id, false)
		case ids[1]:
			return q.Delete(t.Context(), id)
		}
		return nil
	}}
	n, err := dlq.RetryAll(t.Context(), other, nil, pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Empty(t, list(t, q, pawl.Filter{}))
}

// Rule: a job that was retried after the list was read, and died again, stays dead.
func TestRetryAllKeepsJobsDeadAgain(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		again, other := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")
		busy := &shelf{queue: q, retry: func(id pawl.ID) error {
			if id == again {
				deadAgain(t, q, again)
			}
			return nil
		}}
		n, err := dlq.RetryAll(t.Context(), busy, nil, pawl.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []pawl.ID{again}, list(t, q, pawl.Filter{}))
		require.Equal(t, pawl.Ready, get(t, q, other).State)
	})
}

// Rule: dead jobs share transactions of at most 500.
func TestRetryAllInPortions(t *testing.T) {
	q := inMemory(t)
	for range 1100 {
		makeDead(t, q, "mail", "a")
	}
	counted := &portions{queue: q}
	n, err := dlq.RetryAll(t.Context(), counted, nil, pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1100, n)
	require.Equal(t, []int{500, 500, 100}, counted.sizes)
}

// portions is a store that counts the jobs of each change.
type portions struct {
	queue
	sizes []int
}

func (p *portions) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	p.sizes = append(p.sizes, len(ids))
	return p.queue.Change(ctx, c, ids...)
}

// Rule: the error is that of the first failed job in list order, however the calls overlap, and the
// others continue.
func TestErrorOfManyIsThatOfTheFirst(t *testing.T) {
	q := inMemory(t)
	for range 100 {
		makeDead(t, q, "mail", "a")
	}
	ids := list(t, q, pawl.Filter{})
	errs := numbered(ids)
	for range 20 {
		late := make(chan struct{})
		sink := dlq.SinkFunc(func(_ context.Context, dead *pawl.Envelope) error {
			switch dead.ID {
			case ids[3]:
				<-late // the first of them is the last to fail
			case ids[50]:
				close(late)
			}
			return errs[dead.ID]
		})
		opts := quiet()
		opts.Parallel = 64
		n, err := dlq.Forward(t.Context(), q, sink, opts, pawl.Filter{})
		require.ErrorIs(t, err, errs[ids[0]])
		require.NotErrorIs(t, err, errs[ids[50]])
		require.ErrorContains(t, err, "99 more")
		require.Zero(t, n)
	}
	fails := &shelf{queue: q, delete: func(id pawl.ID) error { return errs[id] }}
	n, err := dlq.Purge(t.Context(), fails, tomorrow(), pawl.Filter{})
	require.ErrorIs(t, err, errs[ids[0]])
	require.ErrorContains(t, err, "99 more")
	require.Zero(t, n)
}

// Rule: after the queue is closed or poisoned, no further jobs are tried.
func TestManyStopAtAClosedQueue(t *testing.T) {
	q := inMemory(t)
	for range 1000 {
		makeDead(t, q, "mail", "a")
	}
	for _, end := range []error{pawl.ErrClosed, pawl.ErrPoisoned, context.Canceled} {
		calls := 0
		fails := &shelf{queue: q, retry: func(pawl.ID) error {
			calls++
			return end
		}}
		n, err := dlq.RetryAll(t.Context(), fails, nil, pawl.Filter{})
		require.ErrorIs(t, err, end)
		require.Zero(t, n)
		require.Equal(t, 1, calls)
		require.Len(t, list(t, q, pawl.Filter{}), 1000)
	}
}
