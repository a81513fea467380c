package postgres

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/core"
)

// ungrouped is a queue without a scheduler, whose last group had a number of calls.
func ungrouped(lastGroup int) *Queue {
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

// grouped takes a group, and returns how long it waited for the group's calls.
func grouped(q *Queue) (took time.Duration, calls int) {
	began := time.Now()
	q.group()
	took = time.Since(began)
	group, _, _ := q.intake.Take()
	return took, len(group)
}

// Rule: a group waits for as many callers as the last one had, and no longer than until they have all
// called.
func TestAGroupWaitsForTheCallersOfTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ungrouped(2)
		come(t, q, 0, 100*time.Microsecond, 200*time.Microsecond, 300*time.Microsecond)
		took, calls := grouped(q)
		require.Equal(t, 200*time.Microsecond, took)
		require.Equal(t, 3, calls)
	})
}

// Rule: a group does not wait for calls if the last one had a single call, or if the queue uses another
// clock.
func TestALoneCallerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ungrouped(1)
		come(t, q, 0, 100*time.Microsecond)
		took, calls := grouped(q)
		require.Zero(t, took)
		require.Equal(t, 1, calls)
		<-time.After(groupWait)
		q.lastGroup, q.opts.Now = 2, time.Now
		took, _ = grouped(q)
		require.Zero(t, took)
	})
}

// Rule: if no call comes, a group waits up to a limit, and later groups wait less and less often.
func TestWaitsInVainBecomeRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ungrouped(2)
		waits := 0
		for range 10000 {
			come(t, q, 0)
			took, calls := grouped(q)
			require.Equal(t, 1, calls)
			if took > 0 {
				require.Equal(t, groupWait, took)
				waits++
			}
		}
		require.Equal(t, 161, waits) // after 1, 3, 7, 15, 31, and then 63 groups without a wait

		for range 2 << mostInVain { // callers come again
			come(t, q, 0, 100*time.Microsecond, 200*time.Microsecond)
			_, calls := grouped(q)
			if waits++; calls < 3 {
				waits = 0
			}
			<-time.After(groupWait)
			q.intake.Take()
		}
		require.GreaterOrEqual(t, waits, 1<<mostInVain, "it waits for each group again")
	})
}
