package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The counts are stored, not computed: after each transition they must match a full scan, and
// Stats must show them.
func TestStatsAfterEveryTransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, &Options{MaxCrashes: 2})
		const name = pawl.DefaultQueue
		var l *pawl.Lease
		must := func(err error) { t.Helper(); require.NoError(t, err) }
		lease := func() { l = leaseOne(t, q) }
		for _, step := range []struct {
			transition string
			do         func()
			want       pawl.Counts
		}{
			{"enqueue ready", func() { add(t, q, nil) }, pawl.Counts{Ready: 1}},
			{"enqueue delayed", func() { add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour }) }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"extend", func() { _, err := q.Extend(t.Context(), l); must(err) }, pawl.Counts{Leased: 1, Delayed: 1}},
			{"nack", func() { must(q.Settle(t.Context(), l.Nack(0, errBoom))) }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch after nack", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"nack with delay", func() { must(q.Settle(t.Context(), l.Nack(time.Minute, errBoom))) }, pawl.Counts{Delayed: 2}},
			{"promote", func() { pass(time.Minute); synctest.Wait() }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch after delay", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"snooze", func() { must(q.Settle(t.Context(), l.Snooze(time.Minute))) }, pawl.Counts{Delayed: 2}},
			{"promote again", func() { pass(time.Minute); synctest.Wait() }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch after snooze", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"release", func() { must(q.Settle(t.Context(), l.Release())) }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch after release", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"reap", func() { expire(q) }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch after reap", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"poison", func() { expire(q) }, pawl.Counts{Dead: 1, Delayed: 1}},
			{"retry", func() { must(q.Retry(t.Context(), l.ID, false)) }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch after retry", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"abandon", func() { must(q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errBoom))) }, pawl.Counts{Dead: 1, Delayed: 1}},
			{"retry again", func() { must(q.Retry(t.Context(), l.ID, true)) }, pawl.Counts{Ready: 1, Delayed: 1}},
			{"fetch once more", lease, pawl.Counts{Leased: 1, Delayed: 1}},
			{"ack", func() { must(q.Settle(t.Context(), l.Ack())) }, pawl.Counts{Delayed: 1}},
		} {
			step.do()
			require.Equal(t, step.want, countsOf(t, q, name), step.transition)
			checkNow(t, q)
		}
	})
}

func TestStatsCountsEachQueueApart(t *testing.T) {
	q := openTest(t, nil)
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Empty(t, stats.Queues)
	require.Equal(t, formatVersion, stats.Format)
	require.Equal(t, q.path, stats.Path)
	require.Positive(t, stats.Size)

	fill(t, q, 3, "b")
	fill(t, q, 2, "a")
	fetch(t, q, 1, "b")
	for _, l := range fetch(t, q, 2, "a") {
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	}
	stats, err = q.Stats(t.Context())
	require.NoError(t, err)
	require.Len(t, stats.Queues, 2, "one that is empty now is still known")
	require.Equal(t, "b", stats.Queues[0].Name, "in the order of their first job")
	require.Equal(t, pawl.Counts{Ready: 2, Leased: 1}, stats.Queues[0].Counts)
	require.Equal(t, "a", stats.Queues[1].Name)
	require.Equal(t, pawl.Counts{}, stats.Queues[1].Counts)

	sum := stats.Queues[0].Counts
	driver.AddCounts(&sum, pawl.Counts{Ready: 1, Delayed: 2, Leased: 4, Dead: 5})
	require.Equal(t, pawl.Counts{Ready: 3, Delayed: 2, Leased: 5, Dead: 5}, sum)
}

// The job with the oldest ready time may be behind others: of a higher priority, or because it
// crashed.
func TestStatsFindsTheOldestReadyJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		oldest := func(name string) time.Time {
			stats, err := q.Stats(t.Context())
			require.NoError(t, err)
			for _, row := range stats.Queues {
				if row.Name == name {
					return row.Oldest
				}
			}
			return time.Time{}
		}
		start := fromFile(time.Now())
		second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
		put := func(name string, change func(*pawl.Envelope)) {
			add(t, q, func(e *pawl.Envelope) {
				if e.Queue = name; change != nil {
					change(e)
				}
			})
		}
		put("a", func(e *pawl.Envelope) { e.Delay = 1000 * time.Hour })
		require.Zero(t, oldest("a"), "a delayed job is not ready")
		pass(time.Second)
		put("b", nil)
		put("a", nil)
		require.Equal(t, second(1), oldest("a"))
		pass(time.Second)
		put("a", func(e *pawl.Envelope) { e.Priority = 127 })
		put("a", func(e *pawl.Envelope) { e.Priority = -128 })
		require.Equal(t, second(1), oldest("a"))
		require.Len(t, fetch(t, q, 1, "a"), 1) // the job of priority 127
		crashes := fetch(t, q, 1, "a")         // the job that is ready since second 1
		require.Equal(t, second(2), oldest("a"), "that of priority -128")
		expire(q)
		require.Equal(t, 1, find(t, q, crashes[0].ID).Crashes)
		require.Equal(t, second(1), oldest("a"), "crashed, and ready since then")
		require.Equal(t, second(1), oldest("b"))
		fetch(t, q, 9, "a")
		require.Zero(t, oldest("a"))
	})
}
