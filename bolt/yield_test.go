package bolt

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: the scheduler does not wait for callers: it continues when none comes, however many it has just answered.
func TestYieldWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scheduler{intake: newIntake()}
		s.lastBatch = 1 << 40
		began := time.Now()
		s.yieldForBatch()
		require.Zero(t, s.lastBatch, "nobody came")
		s.intake.came.Add(3)
		s.yieldForBatch()
		require.EqualValues(t, 3, s.lastBatch)
		require.EqualValues(t, 3, s.arrived)
		require.Zero(t, time.Since(began))
	})
}

// Rule: the scheduler waits for at most as many calls as it has answered, while calls keep
// coming.
func TestYieldEndsWhileCallsKeepComing(t *testing.T) {
	for _, procs := range []int{1, runtime.GOMAXPROCS(0)} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			s := &scheduler{intake: newIntake(), lasted: time.Hour}
			var over atomic.Bool
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for !over.Load() {
					s.intake.came.Add(1)
					runtime.Gosched()
				}
			}()
			for range 100 {
				s.lastBatch = 5 // whatever the real number is
				before := s.arrived
				s.yieldForBatch()
				require.Equal(t, s.arrived-before, s.lastBatch)
			}
			over.Store(true)
			<-stopped
		}()
	}
}

// Rule: if yielding takes longer than a transaction, the scheduler stops it for a while.
func TestYieldIsLeftWhereItTakesLong(t *testing.T) {
	s := &scheduler{intake: newIntake(), lastBatch: 5, lasted: -1}
	s.yieldForBatch()
	until := s.yieldAfter
	require.True(t, until.After(time.Time{}))
	require.LessOrEqual(t, time.Until(until), maxBackoff)
	s.yieldAfter = time.Now().Add(time.Hour)
	s.lastBatch, s.lasted = 5, -1
	until = s.yieldAfter
	s.yieldForBatch()
	require.Equal(t, until, s.yieldAfter, "it did not give way")
	s.yieldAfter, s.lastBatch, s.lasted = time.Time{}, 5, time.Hour
	s.yieldForBatch()
	require.True(t, s.yieldAfter.IsZero(), "it gave way, and that was short")
}

// Rule: yielding that brings more calls than wait for it may take longer than a transaction. Otherwise the goroutines of
// many callers, which need longer than a commit, would split their groups.
func TestYieldMayTakeLongIfItBringsCalls(t *testing.T) {
	s := &scheduler{lasted: time.Millisecond}
	for _, c := range []struct{ brought, waiting, times int64 }{{0, 0, 1}, {0, 9, 1}, {3, 9, 1}, {9, 2, 4}, {9, 0, mostWorth}, {60, 4, mostWorth}} {
		require.Equal(t, time.Duration(c.times)*time.Millisecond, s.worth(c.brought, c.waiting), "%+v", c)
	}
}

// Rule: on a machine that is always busy, yielding costs a hundredth of the time. After a
// single slow yield it is tried again soon.
func TestYieldBackoffGrows(t *testing.T) {
	s := &scheduler{intake: newIntake(), lasted: -1}
	for _, times := range []time.Duration{leastBackoff, 2 * leastBackoff, 4 * leastBackoff, 8 * leastBackoff, 16 * leastBackoff, mostBackoff, mostBackoff} {
		s.yieldAfter, s.lastBatch = time.Time{}, 5
		s.yieldForBatch()
		require.Equal(t, times, s.yieldBackoff)
	}
	s.yieldAfter, s.lastBatch, s.lasted = time.Time{}, 5, time.Hour
	s.yieldForBatch()
	require.Zero(t, s.yieldBackoff)
}

// Rule: a lone caller is served immediately, and so is a Close after it, even on a single processor. In virtual time
// nothing waits for a clock.
func TestLoneCallersAreNotDelayed(t *testing.T) {
	for _, procs := range []int{1, runtime.GOMAXPROCS(0)} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				began := time.Now()
				for range 20 {
					add(t, q, nil)
					require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
				}
				many := make([]*pawl.Lease, 0, 50)
				for range cap(many) {
					add(t, q, nil)
				}
				many = append(many, fetch(t, q, cap(many))...)
				atOnce(t, many, func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) })
				add(t, q, nil) // alone, after many callers were answered
				require.NoError(t, q.Close())
				require.Zero(t, time.Since(began))
			})
		}()
	}
}
