package postgres

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/core"
)

// gatherer is a queue without a scheduler, whose last group had a number of calls.
func gatherer(lastGroup int) *Queue {
	q := &Queue{intake: newIntake()}
	q.lastGroup = lastGroup
	return q
}

// come leaves calls, each after a time.
func come(t *testing.T, q *Queue, after ...time.Duration) {
	for _, d := range after {
		time.AfterFunc(d, func() { require.NoError(t, q.intake.Put(&call{Call: core.NewCall(t.Context(), nil)})) })
	}
	synctest.Wait()
}

// gathered returns how long it took to gather a group, and takes it.
func gathered(q *Queue) (took time.Duration, calls int) {
	began := time.Now()
	q.gather()
	took = time.Since(began)
	group, _, _ := q.intake.Take()
	return took, len(group)
}

// Rule: a group waits for the callers of the last one, and no longer than until they are all there.
func TestAGroupWaitsForTheCallersOfTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := gatherer(2)
		come(t, q, 0, 100*time.Microsecond, 200*time.Microsecond, 300*time.Microsecond)
		took, calls := gathered(q)
		require.Equal(t, 200*time.Microsecond, took)
		require.Equal(t, 3, calls)
	})
}

// Rule: a group waits for nobody if the last one had a single call, or if the time goes by another clock.
func TestALoneCallerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := gatherer(1)
		come(t, q, 0, 100*time.Microsecond)
		took, calls := gathered(q)
		require.Zero(t, took)
		require.Equal(t, 1, calls)
		<-time.After(patience)
		q.lastGroup, q.opts.Now = 2, time.Now
		took, _ = gathered(q)
		require.Zero(t, took)
	})
}

// Rule: if nobody comes, a group waits as long as its patience lasts, and later ones ever less often.
func TestWaitsInVainBecomeRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := gatherer(2)
		waits := 0
		for range 10000 {
			come(t, q, 0)
			took, calls := gathered(q)
			require.Equal(t, 1, calls)
			if took > 0 {
				require.Equal(t, patience, took)
				waits++
			}
		}
		require.Equal(t, 161, waits) // after 1, 3, 7, 15, 31, and then 63 groups without a wait

		for range 2 << mostInVain { // callers come again
			come(t, q, 0, 100*time.Microsecond, 200*time.Microsecond)
			_, calls := gathered(q)
			if waits++; calls < 3 {
				waits = 0
			}
			<-time.After(patience)
			q.intake.Take()
		}
		require.GreaterOrEqual(t, waits, 1<<mostInVain, "it waits for each group again")
	})
}
