package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// newBatch returns n jobs of kind "k".
func newBatch(n int) []*pawl.Envelope {
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
	}
	return batch
}

// If one job of a batch is refused, no job is stored and no envelope changes.
func TestBatchIsAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		rule  string
		spoil func(*testing.T, *Queue, *pawl.Envelope)
		want  error
	}{
		{"no kind", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.Kind = "" }, pawl.ErrInvalid},
		{"a kind that is too long", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.Kind = strings.Repeat("k", 256) }, pawl.ErrInvalid},
		{"a bad queue", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.Queue = "a\x00b" }, pawl.ErrInvalid},
		{"negative retries", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.MaxRetries = -1 }, pawl.ErrInvalid},
		{"too many retries", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.MaxRetries = pawl.MaxMaxRetries + 1 }, pawl.ErrInvalid},
		{"a negative delay", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.Delay = -1 }, pawl.ErrInvalid},
		{"a negative timeout", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.Timeout = -1 }, pawl.ErrInvalid},
		{"a bad policy", func(_ *testing.T, _ *Queue, e *pawl.Envelope) {
			bad := pawl.Fixed(-time.Second)
			e.Policy = &bad
		}, pawl.ErrInvalid},
		{"a header without a key", func(_ *testing.T, _ *Queue, e *pawl.Envelope) { e.Headers = map[string]string{"": "v"} }, pawl.ErrInvalid},
		{"a payload that is too large", func(_ *testing.T, q *Queue, e *pawl.Envelope) { e.Payload = make([]byte, q.opts.MaxPayload+1) }, pawl.ErrPayloadTooLarge},
		{"an ID that the queue holds ready", func(t *testing.T, q *Queue, e *pawl.Envelope) { e.ID = add(t, q, nil).ID }, pawl.ErrConflict},
		{"an ID that the queue holds leased", func(t *testing.T, q *Queue, e *pawl.Envelope) {
			e.ID = add(t, q, func(e *pawl.Envelope) { e.Priority = 1 }).ID
			fetch(t, q, 1)
		}, pawl.ErrConflict},
		{"an ID that the queue holds dead", func(t *testing.T, q *Queue, e *pawl.Envelope) {
			e.ID = add(t, q, nil).ID
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, nil)))
		}, pawl.ErrConflict},
	} {
		t.Run(c.rule, func(t *testing.T) {
			q := openTest(t, nil)
			batch := newBatch(5)
			batch[0].ID = pawl.NewID(time.Now())
			c.spoil(t, q, batch[3])
			before := digest(t, q)
			var copies []pawl.Envelope
			for _, e := range batch {
				copies = append(copies, *e)
			}
			require.ErrorIs(t, withid.Enqueue(t.Context(), q, batch...), c.want)
			require.Equal(t, before, digest(t, q))
			for i, e := range batch {
				require.Equal(t, copies[i], *e)
			}
		})
	}
}

func TestSameIDTwiceInABatch(t *testing.T) {
	q := openTest(t, nil)
	batch := newBatch(3)
	batch[0].ID = pawl.NewID(time.Now())
	batch[2].ID = batch[0].ID
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, batch...), pawl.ErrConflict)
	require.Equal(t, pawl.Counts{}, countsOf(t, q, pawl.DefaultQueue))
}

func TestSameIDTwiceInACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		release := g.occupy(q)
		id := pawl.NewID(time.Now())
		var calls []<-chan error
		for range 3 {
			calls = append(calls, started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{ID: id, Kind: "k"}) }))
		}
		synctest.Wait()
		release()
		refused := 0
		for _, call := range calls {
			if err := <-call; err != nil {
				require.ErrorIs(t, err, pawl.ErrConflict)
				refused++
			}
		}
		require.Equal(t, 2, refused)
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
	})
}

func TestIDIsFreeAgainOnceItsJobIsGone(t *testing.T) {
	q := openTest(t, nil)
	id := add(t, q, nil).ID
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
	require.Equal(t, id, add(t, q, func(e *pawl.Envelope) { e.ID = id }).ID)
}

func TestBatchLimits(t *testing.T) {
	q := openTest(t, nil)
	require.NoError(t, withid.Enqueue(t.Context(), q), "no job is no work")
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, newBatch(pawl.MaxBatchJobs+1)...), pawl.ErrBatchTooLarge)
	require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(pawl.MaxBatchJobs)...))
	require.Equal(t, pawl.Counts{Ready: pawl.MaxBatchJobs}, countsOf(t, q, pawl.DefaultQueue))

	batch := newBatch(65)
	payload := make([]byte, pawl.MaxBatchBytes/64)
	for _, e := range batch[:64] {
		e.Payload = payload
	}
	batch[64].Payload = payload[:1]
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, batch...), pawl.ErrBatchTooLarge, "a byte too much")
	batch[64].Payload = nil
	_, _, err := q.prepare(batch) // without writing 64 MiB
	require.NoError(t, err)
}

func TestMaxPayload(t *testing.T) {
	for _, limit := range []int{0, 1, 100, 2 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			q := openTest(t, &Options{MaxPayload: limit})
			if limit == 0 {
				limit = pawl.DefaultMaxPayload
			}
			require.Equal(t, limit, q.opts.MaxPayload)
			require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Payload: make([]byte, limit+1)}), pawl.ErrPayloadTooLarge)
			add(t, q, func(e *pawl.Envelope) { e.Payload = make([]byte, limit) })
			require.Len(t, leaseOne(t, q).Payload, limit)
		})
	}
}

// A payload of 1 KiB and more is stored apart from its record. It stays the same on every path
// of the job, and is removed with the job.
func TestPayloadComesBackEqual(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	for _, size := range []int{0, 1, 1023, 1024, 1025, 4096, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			q := openTest(t, nil)
			payload := make([]byte, size)
			random.Read(payload)
			id := add(t, q, func(e *pawl.Envelope) { e.Payload = bytes.Clone(payload) }).ID
			require.True(t, bytes.Equal(payload, find(t, q, id).Payload))
			require.NoError(t, q.view(t.Context(), func(s *store) error {
				require.Equal(t, size >= largePayload, s.payloads.Get(id[:]) != nil)
				return nil
			}))
			l := leaseOne(t, q)
			require.True(t, bytes.Equal(payload, l.Payload))
			require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
			l = leaseOne(t, q)
			require.True(t, bytes.Equal(payload, l.Payload), "after a failure")
			require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonExhausted, errBoom)))
			require.True(t, bytes.Equal(payload, find(t, q, id).Payload), "as a dead job")
			require.NoError(t, q.Retry(t.Context(), id, false))
			l = leaseOne(t, q)
			require.True(t, bytes.Equal(payload, l.Payload), "and after a retry")
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			require.NoError(t, q.view(t.Context(), func(s *store) error {
				require.Nil(t, s.payloads.Get(id[:]))
				return nil
			}))
		})
	}
}

// If a caller slices payloads out of one buffer, nothing is written past their ends, where the
// next payload begins.
func TestPayloadsMayShareABuffer(t *testing.T) {
	q := openTest(t, nil)
	const size = 2 * largePayload
	buffer := bytes.Repeat([]byte("0123456789abcdef"), 4*size/16)
	before := bytes.Clone(buffer)
	batch := newBatch(4)
	for i, e := range batch {
		e.Payload = buffer[i*size : (i+1)*size]
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	require.True(t, bytes.Equal(before, buffer), "the caller's memory is not written to")
	for _, e := range batch {
		require.True(t, bytes.Equal(before[:size], find(t, q, e.ID).Payload))
	}
}

func TestEnqueueFillsInTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		first, second := &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", Delay: time.Minute, Queue: "q"}
		require.NoError(t, withid.Enqueue(t.Context(), q, first, second))
		now := time.Now()
		require.False(t, first.ID.IsZero())
		first, second = find(t, q, first.ID), find(t, q, second.ID)
		require.NotEqual(t, first.ID, second.ID)
		require.Equal(t, pawl.DefaultQueue, first.Queue)
		require.Equal(t, pawl.DefaultQueue, first.Origin)
		require.Equal(t, "q", second.Origin)
		require.True(t, first.Created.Equal(now))
		require.True(t, first.NotBefore.Equal(now))
		require.True(t, second.NotBefore.Equal(now.Add(time.Minute)))
		require.Zero(t, second.Delay)
		require.Equal(t, first.Seq+1, second.Seq)
		third := find(t, q, add(t, q, nil).ID)
		require.Greater(t, third.Seq, second.Seq)
	})
}

// What a job brings from another queue stays. What this queue counts starts at zero.
func TestForwardedJobKeepsItsIdentity(t *testing.T) {
	q := openTest(t, nil)
	id, created := pawl.NewID(time.Now()), time.Unix(1_000_000, 5)
	policy := pawl.Exponential(time.Second, 2).Cap(time.Minute).Jitter(0.5)
	e := &pawl.Envelope{
		ID: id, Origin: "elsewhere", Created: created, Kind: "k", Queue: "here", Payload: []byte("p"),
		Headers: map[string]string{"a": "1", "b": ""}, Priority: -7, Timeout: time.Hour, MaxRetries: 9, Policy: &policy,
		Attempts: 3, Crashes: 2, Failures: 1, Death: &pawl.Death{Reason: pawl.ReasonExhausted},
		State: pawl.Dead, LeasedSince: created, History: []pawl.Failure{{Attempt: 1}},
	}
	want := *e
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	require.Equal(t, want, *e)
	got := find(t, q, id)
	want.Attempts, want.Crashes, want.Failures, want.Death, want.History = 0, 0, 0, nil, nil
	want.State, want.LeasedSince, want.NotBefore, want.Seq = pawl.Ready, time.Time{}, got.NotBefore, got.Seq
	require.Equal(t, &want, got)
	require.WithinDuration(t, time.Now(), got.NotBefore, time.Minute)
	require.Equal(t, id, leaseOne(t, q, "here").ID)
}
