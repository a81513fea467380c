package memory_test

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
)

func TestBadOptionsAreReportedByEveryCall(t *testing.T) {
	for name, opts := range map[string]memory.Options{
		"Lease":      {Lease: time.Second - 1},
		"MaxCrashes": {MaxCrashes: -2},
		"MaxPayload": {MaxPayload: -1},
	} {
		t.Run(name, func(t *testing.T) {
			q := memory.New(&opts)
			_, fetch := q.Fetch(t.Context(), pawl.Request{Max: 1})
			_, stats := q.Stats(t.Context())
			_, job := q.Job(t.Context(), pawl.ID{})
			for _, err := range []error{withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), fetch, stats, job} {
				var invalid *pawl.InvalidError
				require.ErrorAs(t, err, &invalid)
				require.Equal(t, name, invalid.Field)
			}
			require.NoError(t, q.Close())
		})
	}
	require.ErrorIs(t, withid.Enqueue(t.Context(), memory.New(&memory.Options{MaxPayload: pawl.MaxBatchBytes + 1}), new(pawl.Envelope)), pawl.ErrInvalid)
}

func TestMaxPayload(t *testing.T) {
	q := memory.New(&memory.Options{MaxPayload: 3})
	defer q.Close()
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Payload: []byte("abc")}))
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Payload: []byte("abcd")}), pawl.ErrPayloadTooLarge)
}

// One error-level line for each job that dies, with what an operator looks for.
func TestDeathIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := memory.New(&memory.Options{MaxCrashes: 1, Logger: hclog.New(&hclog.LoggerOptions{Output: &out})})
		defer q.Close()
		lease := func() *pawl.Lease {
			leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
			require.NoError(t, err)
			return leases[0]
		}
		job := &pawl.Envelope{Kind: "mail"}
		require.NoError(t, withid.Enqueue(t.Context(), q, job))
		require.NoError(t, q.Settle(t.Context(), lease().Nack(0, errors.New("soft"))))
		require.Empty(t, out.String())
		require.NoError(t, q.Settle(t.Context(), lease().Abandon(pawl.ReasonExhausted, errors.New("hard "+strings.Repeat("x", 10_000)))))
		line := out.String()
		require.Equal(t, 1, strings.Count(line, "\n"))
		for _, part := range []string{"[ERROR]", job.ID.String(), "kind=mail", "reason=exhausted", "attempts=2", "hard x"} {
			require.Contains(t, line, part)
		}
		require.Less(t, len(line), 1000)

		out.Reset()
		require.NoError(t, q.Retry(t.Context(), job.ID, false))
		<-time.After(lease().Length)
		synctest.Wait()
		require.Contains(t, out.String(), "reason=poison")
	})
}

func TestClockSetForwardIsNoticedWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		q := memory.New(&memory.Options{Now: now})
		defer q.Close()
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Delay: 24 * time.Hour}))
		time.AfterFunc(10*time.Second, func() { ahead.Store(int64(25 * time.Hour)) })
		start := time.Now()
		_, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(start), 10*time.Second+time.Minute)
	})
}

// A wall clock that stands still must not keep the queue awake.
func TestFrozenClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := memory.New(&memory.Options{Now: func() time.Time { return start }})
		defer q.Close()
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Delay: 1}))
		<-time.After(time.Minute)
		_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.ErrorIs(t, err, pawl.ErrEmpty)
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(nil)
		defer q.Close()
		start := time.Now()
		put := func(name string, priority int8) {
			require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: name, Priority: priority}))
		}
		put("b", 0)
		<-time.After(time.Second)
		put("b", 5)
		put("a", 0)
		_, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"a"}, Max: 1})
		require.NoError(t, err)

		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Len(t, stats.Queues, 2)
		b, a := stats.Queues[0], stats.Queues[1] // in the order of their first job
		require.Equal(t, "b", b.Name)
		require.Equal(t, pawl.Counts{Ready: 2}, b.Counts)
		require.True(t, b.Oldest.Equal(start), "the job that waits longest stands behind one of a higher priority")
		require.Equal(t, pawl.Counts{Leased: 1}, a.Counts)
		require.Zero(t, a.Oldest)

		sum := b.Counts
		driver.AddCounts(&sum, pawl.Counts{Ready: 1, Delayed: 2, Leased: 4, Dead: 5})
		require.Equal(t, pawl.Counts{Ready: 3, Delayed: 2, Leased: 4, Dead: 5}, sum)
	})
}

// A test that sets its clock sees what that changes at once.
func TestClockSetForwardIsSeenByTheNextLook(t *testing.T) {
	now := time.Now()
	q := memory.New(&memory.Options{Now: func() time.Time { return now }})
	defer q.Close()
	job := &pawl.Envelope{Kind: "k", Delay: time.Hour}
	require.NoError(t, withid.Enqueue(t.Context(), q, job))
	now = now.Add(time.Hour)
	e, err := q.Job(t.Context(), job.ID)
	require.NoError(t, err)
	require.Equal(t, pawl.Ready, e.State)
}
