package bolt

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// fillMixed fills a queue with jobs of all states with everything a job can have, as chosen by
// a seed. Call it in a bubble.
func fillMixed(t *testing.T, q *Queue, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	queues := []string{"default", "a", "ab", "\xff"}
	some := func(n int) bool { return random.IntN(n) == 0 }
	for range 12 {
		batch := newBatch(1 + random.IntN(12))
		for i, e := range batch {
			e.Queue, e.Kind = queues[random.IntN(len(queues))], fmt.Sprint("k", random.IntN(3))
			e.Payload = make([]byte, []int{0, 10, largePayload - 1, largePayload, 3 * largePayload}[random.IntN(5)])
			e.Priority, e.Timeout, e.MaxRetries = int8(random.IntN(256)-128), time.Duration(random.IntN(1000)), random.IntN(1001)
			if some(3) {
				e.Headers = map[string]string{"trace": fmt.Sprint(i), "": ""}
				delete(e.Headers, "")
			}
			if some(3) {
				e.Delay = time.Duration(1+random.IntN(100)) * time.Hour
			}
			if some(3) {
				e.Deadline = time.Now().Add(time.Duration(1+random.IntN(500)) * time.Hour)
			}
			if some(3) {
				e.Retain = time.Duration(1+random.IntN(100)) * time.Hour
			}
			if some(3) {
				e.IdempotencyKey, e.IdempotencyTTL = fmt.Sprint("e", random.IntN(6)), time.Duration(random.IntN(3))*time.Hour
			}
			if some(4) {
				e.UniqueKey = fmt.Sprint("u", random.IntN(20))
			}
			if some(4) {
				p := pawl.Exponential(time.Second, 2).Cap(time.Hour)
				e.Policy = &p
			}
			if some(4) {
				e.KeyID, e.Signature = "key", []byte{1, 2, byte(i)}
			}
			if some(4) {
				e.Origin, e.Created = "elsewhere", time.Now().Add(-time.Duration(random.IntN(1000))*time.Hour)
			}
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
		pass(time.Duration(random.IntN(90)) * time.Minute)
		for _, l := range fetch(t, q, 1+random.IntN(12), queues...) {
			pass(time.Duration(random.IntN(1000)))
			var err error
			switch random.IntN(9) {
			case 0:
				err = q.Settle(t.Context(), l.Ack())
			case 1, 2:
				err = q.Settle(t.Context(), l.Nack(time.Duration(random.IntN(200))*time.Hour, fmt.Errorf("failure of attempt %d", l.Attempt())))
			case 3:
				err = q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errBoom))
			case 4:
				err = q.Settle(t.Context(), l.Abandon(pawl.ReasonSignature, nil))
			case 5, 6:
				err = q.Settle(t.Context(), l.Snooze(time.Duration(random.IntN(100))*time.Hour))
			case 7:
				err = q.Settle(t.Context(), l.Release())
			case 8: // it stays leased, or expires
			}
			require.NoError(t, err)
		}
	}
	// One job failed more often than its history shows, and some are leased at the end.
	e := add(t, q, func(e *pawl.Envelope) { e.Queue, e.Retain = "failing", 20*time.Hour })
	for n := range pawl.HistoryKeepHead + pawl.HistoryKeepTail + 7 {
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q, "failing").Nack(0, fmt.Errorf("failure %d", n))))
	}
	require.Equal(t, 207, find(t, q, e.ID).Failures)
	add(t, q, func(e *pawl.Envelope) { e.Queue, e.Retain = "failing", 10*time.Hour })
	for _, l := range fetch(t, q, 9, "failing") {
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	}
	add(t, q, func(e *pawl.Envelope) { e.Queue = "failing" })
	add(t, q, func(e *pawl.Envelope) { e.Queue, e.Payload = "failing", make([]byte, 2*largePayload) })
	fetch(t, q, 5, queues...)
}

// listAll lists the jobs that match a filter, in pages of at most max.
func listAll(t *testing.T, r *reader, f pawl.Filter, max int) (jobs []*pawl.Envelope) {
	t.Helper()
	for after := ""; ; {
		part, err := r.List(t.Context(), f, after, max)
		require.NoError(t, err)
		require.LessOrEqual(t, len(part.Jobs), max)
		for _, job := range part.Jobs {
			require.NoError(t, job.Err)
			jobs = append(jobs, job.Job)
		}
		if after = part.Next; after == "" {
			return jobs
		}
		require.Regexp(t, `^[A-Za-z0-9_][A-Za-z0-9_-]*$`, after, "it is safe in a URL and a shell")
	}
}

// effectsOf lists all effects, in pages of at most max.
func effectsOf(t *testing.T, r *reader, max int) (all []driver.Effect) {
	t.Helper()
	for after := ""; ; {
		part, next, err := r.Effects(t.Context(), after, max)
		require.NoError(t, err)
		require.LessOrEqual(t, len(part), max)
		all = append(all, part...)
		if after = next; after == "" {
			return all
		}
	}
}
