package bolt

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
)

// bounded opens a queue with the smallest bound.
func bounded(t *testing.T) *Queue { return openTest(t, &Options{MaxBytes: leastBound}) }

func large() *pawl.Envelope { return &pawl.Envelope{Kind: "k", Payload: make([]byte, 8000)} }

// fillUp enqueues large jobs until there is no room for one more, and returns how many.
func fillUp(t *testing.T, q *Queue) (jobs int) {
	t.Helper()
	for {
		if _, err := q.Enqueue(t.Context(), large()); err != nil {
			require.ErrorIs(t, err, ErrFull)
			return jobs
		}
		jobs++
	}
}

// inUse returns how many bytes of the file are in use.
func inUse(t *testing.T, q *Queue) int64 {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(leastBound), stats.Max)
	return stats.Size - stats.Free
}

// Rule: MaxBytes bounds what is in use, and not the length of the file: the room of jobs that have ended is
// used again.
func TestMaxBytes(t *testing.T) {
	q := bounded(t)
	first := fillUp(t, q)
	require.Greater(t, first, 60, "most of the room is for jobs")
	require.Less(t, inUse(t, q), int64(leastBound+leastBound/20))
	for range 3 {
		leases := fetch(t, q, first)
		require.Len(t, leases, first)
		for _, l := range leases {
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
		}
		again := fillUp(t, q)
		require.InDelta(t, first, again, float64(first)/10)
	}
	require.Less(t, inUse(t, q), int64(leastBound+leastBound/20))
}

// Rule: a full queue refuses an enqueue entirely, also for one of its jobs, and neither a job that is there already
// nor a small one.
func TestFullQueueRefusesAll(t *testing.T) {
	q := bounded(t)
	jobs := fillUp(t, q)
	small := &pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: pawl.UseExisting}
	_, err := q.Enqueue(t.Context(), small, large())
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "MaxBytes is 1048576")
	require.Equal(t, jobs, countsOf(t, q, pawl.DefaultQueue).Ready)
	first, err := q.Enqueue(t.Context(), small)
	require.NoError(t, err)
	existing := large()
	existing.UniqueKey, existing.OnConflict = "u", pawl.UseExisting
	again, err := q.Enqueue(t.Context(), existing)
	require.NoError(t, err)
	require.Equal(t, []pawl.Enqueued{{ID: first[0].ID, Existing: true}}, again)
	require.ErrorIs(t, q.Restore(t.Context(), []*pawl.Envelope{{Kind: "k", State: pawl.Dead, Payload: large().Payload,
		Death: &pawl.Death{Reason: pawl.ReasonPermanent, At: q.now()}}}, nil), ErrFull)
}

// Rule: jobs of a full queue fail, are retried, die, and succeed as usual, and the callback of their group is
// enqueued.
func TestFullQueueSettles(t *testing.T) {
	q := bounded(t)
	require.NoError(t, group.Make(t.Context(), q, group.Group{Name: "g", Done: &pawl.Envelope{Kind: "done", Payload: large().Payload}}))
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "member", Group: "g", Priority: 1})
	require.NoError(t, err)
	fillUp(t, q)
	l := fetch(t, q, 1)[0]
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errors.New("no"))))
	l = fetch(t, q, 1)[0]
	require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errors.New("no"))))
	errs, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbRetry}, l.ID)
	require.NoError(t, errors.Join(append(errs, err)...))
	require.NoError(t, group.Close(t.Context(), q, "g"))
	l = fetch(t, q, 1)[0]
	require.Equal(t, "member", l.Kind)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	s, err := group.Get(t.Context(), q, "g")
	require.NoError(t, err)
	require.True(t, s.Done.Enqueued)
}

// Rule: the bound counts what a transaction of the app has stored so far. One that is rolled back takes no room.
func TestMaxBytesInATransaction(t *testing.T) {
	q := bounded(t)
	back := errors.New("roll back")
	counts := make([]int, 3)
	for i := range counts {
		err := q.Update(t.Context(), func(tx *bbolt.Tx) error {
			for ; ; counts[i]++ {
				if _, err := q.EnqueueTx(tx, large()); err != nil {
					require.ErrorIs(t, err, ErrFull)
					break
				}
			}
			if i == len(counts)-1 {
				return nil
			}
			return back
		})
		if i < len(counts)-1 {
			require.ErrorIs(t, err, back)
		} else {
			require.NoError(t, err)
		}
	}
	require.Greater(t, counts[0], 60)
	require.Equal(t, []int{counts[0], counts[0], counts[0]}, counts)
	require.Equal(t, counts[0], countsOf(t, q, pawl.DefaultQueue).Ready)
	require.Less(t, inUse(t, q), int64(leastBound+leastBound/4))
}

// Rule: a bound that no queue fits in is refused.
func TestInvalidMaxBytes(t *testing.T) {
	for _, max := range []int64{-1, 1, leastBound - 1} {
		_, err := Open(t.TempDir()+"/jobs.db", &Options{MaxBytes: max})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "MaxBytes")
	}
}
