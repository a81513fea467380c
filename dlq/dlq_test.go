package dlq_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: the list has the dead jobs that match the filter, in the order of their death, and no live
// jobs.
func TestList(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		first := makeDead(t, q, "mail", "a")
		second := failDead(t, q, &pawl.Envelope{Kind: "b", Queue: "mail"}, pawl.ReasonPermanent, "hopeless")
		third := makeDead(t, q, "other", "a")
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "a", Queue: "mail"}))

		require.Equal(t, []pawl.ID{first, second, third}, list(t, q, pawl.Filter{}))
		require.Equal(t, []pawl.ID{first, third}, list(t, q, pawl.Filter{Kind: "a"}))
		require.Equal(t, []pawl.ID{first, second}, list(t, q, pawl.Filter{Queue: "mail"}))
		require.Equal(t, []pawl.ID{first}, list(t, q, pawl.Filter{Queue: "mail", Kind: "a", State: pawl.Ready}),
			"the filter's state does not count")
		require.Empty(t, list(t, q, pawl.Filter{Kind: "c"}))

		require.Equal(t, []pawl.ID{second}, list(t, q, pawl.Filter{Reason: pawl.ReasonPermanent}))
		require.Empty(t, list(t, q, pawl.Filter{Reason: pawl.ReasonPoison}))
		died := get(t, q, second).Death.At
		require.Equal(t, []pawl.ID{first}, list(t, q, pawl.Filter{DiedBefore: died}))
		require.Equal(t, []pawl.ID{first, second}, list(t, q, pawl.Filter{DiedBefore: died.Add(1)}))
		require.Equal(t, []pawl.ID{second}, list(t, q, pawl.Filter{DiedBefore: tomorrow(), Reason: pawl.ReasonPermanent}))
	})
}

// Rule: Inspect returns why a job died; it refuses a job in another state.
func TestInspect(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		id := makeDead(t, q, "mail", "a")
		job, err := dlq.Inspect(t.Context(), q, id)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonExhausted, job.Death.Reason)
		require.Equal(t, 1, job.Attempts)
		require.Equal(t, "no luck", job.History[0].Error)

		alive := &pawl.Envelope{Kind: "a"}
		require.NoError(t, withid.Enqueue(t.Context(), q, alive))
		_, err = dlq.Inspect(t.Context(), q, alive.ID)
		require.ErrorIs(t, err, pawl.ErrConflict)
		_, err = dlq.Inspect(t.Context(), q, complete(t, q))
		require.ErrorIs(t, err, pawl.ErrConflict)
		_, err = dlq.Inspect(t.Context(), q, pawl.NewID(job.Created))
		require.ErrorIs(t, err, pawl.ErrNotFound)
	})
}

// complete lets a job succeed whose record is kept.
func complete(t *testing.T, q queue) pawl.ID {
	t.Helper()
	job := &pawl.Envelope{Kind: "a", Queue: "kept", Retain: time.Hour}
	require.NoError(t, withid.Enqueue(t.Context(), q, job))
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"kept"}, Max: 1})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
	return job.ID
}
