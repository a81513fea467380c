package dlq_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/metrics"
)

// forward moves all dead jobs, and demands that all went.
func forward(t *testing.T, from dlq.Store, to dlq.Target, name string, want int) {
	t.Helper()
	n, err := dlq.Forward(t.Context(), from, dlq.ToQueue(to, name), nil, pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, want, n)
	require.Empty(t, list(t, from, pawl.Filter{}))
}

// fetch leases a job of a queue, nil when there is none.
func fetch(t *testing.T, q queue, queue string) *pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{queue}, Max: 1, Wait: pawl.WaitNot})
	if err != nil {
		require.ErrorIs(t, err, pawl.ErrEmpty)
		return nil
	}
	return leases[0]
}

// Rule: a forwarded job keeps its identity, its past is in headers, and it starts anew and ready in
// its new queue.
func TestToQueue(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		from, to := open(), open()
		policy := pawl.Fixed(time.Second)
		id := failDead(t, from, &pawl.Envelope{
			Kind: "mail", Queue: "slow", Origin: "first", Payload: []byte("payload"), Created: time.Unix(7, 8),
			Headers: map[string]string{"trace": "1"}, Priority: 5, Timeout: time.Minute, MaxRetries: 9, Policy: &policy,
			UniqueKey: "u", UniqueIn: []pawl.State{pawl.Ready}, IdempotencyKey: "i", IdempotencyTTL: time.Hour, Retain: time.Hour,
			Deadline: time.Now().Add(time.Hour),
		}, pawl.ReasonPermanent, "one", "two", "three")
		dead := get(t, from, id)
		forward(t, from, to, "", 1)

		job := get(t, to, id)
		past, ok := dlq.SourceOf(job)
		require.True(t, ok)
		require.Equal(t, "1", job.Headers["trace"])
		require.True(t, job.Created.Equal(time.Unix(7, 8)))
		require.Equal(t, pawl.Envelope{
			ID: id, Kind: "mail", Origin: "first", Payload: []byte("payload"), Created: job.Created, Headers: job.Headers,
			Queue: "failed_jobs", Seq: job.Seq, Priority: 5, NotBefore: job.NotBefore,
			Timeout: time.Minute, MaxRetries: 9, Policy: &policy, State: pawl.Ready,
		}, *job)

		require.Equal(t, pawl.ReasonPermanent, past.Reason)
		require.True(t, past.At.Equal(dead.Death.At))
		require.Equal(t, "slow", past.Queue)
		require.Equal(t, 3, past.Attempts)
		require.Equal(t, 3, past.Failures)
		require.Equal(t, "i", past.IdempotencyKey)
		require.Len(t, past.History, 3)
		for i, failure := range past.History {
			require.Equal(t, dead.History[i].Attempt, failure.Attempt)
			require.Equal(t, dead.History[i].Error, failure.Error)
			require.True(t, dead.History[i].At.Equal(failure.At))
		}
		require.Equal(t, id, fetch(t, to, dlq.FailedJobs).ID)
	})
}

func TestToQueueOfAName(t *testing.T) {
	from, to := inMemory(t), inMemory(t)
	id := makeDead(t, from, "mail", "a")
	forward(t, from, to, "graves", 1)
	require.Equal(t, "graves", get(t, to, id).Queue)
}

// Rule: a forwarded job is ready at once, even if its schedule or its deadline has passed, and does
// not die again.
func TestToQueueDropsTheSchedule(t *testing.T) {
	from, to := inMemory(t), inMemory(t)
	late := &pawl.Envelope{Kind: "a", Queue: "mail", Deadline: time.Unix(1, 0)}
	early := &pawl.Envelope{Kind: "a", Queue: "mail", NotBefore: tomorrow()}
	require.NoError(t, withid.Enqueue(t.Context(), from, late, early))
	require.NoError(t, from.Cancel(t.Context(), early.ID))
	require.Equal(t, pawl.ReasonDeadline, get(t, from, late.ID).Death.Reason)
	forward(t, from, to, "", 2)
	for _, id := range []pawl.ID{late.ID, early.ID} {
		require.Equal(t, pawl.Ready, get(t, to, id).State)
		past, ok := dlq.SourceOf(get(t, to, id))
		require.True(t, ok)
		require.Zero(t, past.Attempts)
		require.Empty(t, past.History)
	}
}

// Rule: dead jobs with the same keys are all stored, and all run.
func TestToQueueForwardsEachJob(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		from, to := open(), open()
		var ids []pawl.ID
		for range 2 {
			ids = append(ids, failDead(t, from, &pawl.Envelope{
				Kind: "a", Queue: "mail", UniqueKey: "u", UniqueIn: pawl.States()[:3], IdempotencyKey: "i",
			}, pawl.ReasonExhausted, "no luck"))
		}
		forward(t, from, to, "", 2)
		for _, id := range ids {
			lease := fetch(t, to, dlq.FailedJobs)
			require.NotNil(t, lease)
			require.Equal(t, id, lease.ID)
			require.NoError(t, to.Settle(t.Context(), lease.Ack()))
		}
		require.Nil(t, fetch(t, to, dlq.FailedJobs))
	})
}

// Rule: Keyring.Forwarded verifies a signed dead job, and each one is leased once, even if others
// with its idempotency key are leased or done.
func TestToQueueKeepsSignatures(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		from, to := open(), open()
		keys, err := pawl.NewKeyring("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, pawl.MinSecretBytes)})
		require.NoError(t, err)
		var ids []pawl.ID
		for range 4 {
			job := &pawl.Envelope{Kind: "a", Queue: "mail", Payload: []byte("p"), IdempotencyKey: "i"}
			require.NoError(t, keys.Sign(job))
			ids = append(ids, failDead(t, from, job, pawl.ReasonExhausted, "no luck"))
		}
		forward(t, from, to, "", 4)
		var leased *pawl.Lease
		for n, id := range ids {
			lease := fetch(t, to, dlq.FailedJobs)
			require.NotNil(t, lease, "job %d", n)
			require.Equal(t, id, lease.ID)
			require.ErrorIs(t, keys.Verify(lease.Envelope), pawl.ErrSignature)
			require.ErrorContains(t, keys.Verify(lease.Envelope), "Keyring.Forwarded")
			require.NoError(t, keys.Forwarded().Verify(lease.Envelope))
			dead, ok := dlq.SourceOf(lease.Envelope)
			require.True(t, ok)
			require.Equal(t, "i", dead.IdempotencyKey)
			lease.Headers[dlq.HeaderIdempotencyKey] = "another"
			require.ErrorIs(t, keys.Forwarded().Verify(lease.Envelope), pawl.ErrSignature)
			if n > 0 {
				require.NoError(t, to.Settle(t.Context(), lease.Ack()))
			} else {
				leased = lease
			}
		}
		require.Nil(t, fetch(t, to, dlq.FailedJobs))
		require.NoError(t, to.Settle(t.Context(), leased.Ack()))
	})
}

// Rule: a signed job that dies again in its new queue and is forwarded again still verifies.
func TestToQueueKeepsSignaturesTwice(t *testing.T) {
	q := inMemory(t)
	keys, err := pawl.NewKeyring("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, pawl.MinSecretBytes)})
	require.NoError(t, err)
	job := &pawl.Envelope{Kind: "a", Queue: "mail", IdempotencyKey: "i"}
	require.NoError(t, keys.Sign(job))
	failDead(t, q, job, pawl.ReasonExhausted, "no luck")
	for _, name := range []string{"first", "second"} {
		forward(t, q, q, name, 1)
		lease := fetch(t, q, name)
		require.NoError(t, keys.Forwarded().Verify(lease.Envelope))
		require.NoError(t, q.Settle(t.Context(), lease.Abandon(pawl.ReasonExhausted, errDown)))
	}
}

// Rule: after a crash between the two steps, the next Forward completes them, whatever happened to
// the job in the target.
func TestToQueueAfterACrash(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		for name, meanwhile := range map[string]func(queue){
			"nothing": func(queue) {},
			"leased":  func(to queue) { require.NotNil(t, fetch(t, to, dlq.FailedJobs)) },
			"dead": func(to queue) {
				require.NoError(t, to.Settle(t.Context(), fetch(t, to, dlq.FailedJobs).Abandon(pawl.ReasonExhausted, errDown)))
			},
			"done": func(to queue) { require.NoError(t, to.Settle(t.Context(), fetch(t, to, dlq.FailedJobs).Ack())) },
		} {
			from, to := open(), open()
			id := makeDead(t, from, "mail", "a")
			crash := &shelf{queue: from, delete: func(pawl.ID) error { return pawl.ErrPoisoned }}
			_, err := dlq.Forward(t.Context(), crash, dlq.ToQueue(to, ""), nil, pawl.Filter{})
			require.ErrorIs(t, err, pawl.ErrPoisoned)
			get(t, from, id)
			get(t, to, id)
			meanwhile(to)
			forward(t, from, to, "", 1)
			require.NotNil(t, get(t, to, id), name)
		}
	})
}

// Rule: within one file a dead job moves to another queue in one transition, with its ID, arguments
// and death.
func TestToQueueWithinTheSameFile(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		id := makeDead(t, q, "mail", "a")
		dead := get(t, q, id)
		forward(t, q, q, "", 1)
		require.Empty(t, list(t, q, pawl.Filter{}))
		job := get(t, q, id)
		require.Equal(t, pawl.Ready, job.State)
		require.Equal(t, dlq.FailedJobs, job.Queue)
		require.Equal(t, dead.Payload, job.Payload)
		require.Equal(t, dead.Origin, job.Origin)
		l, ok := dlq.SourceOf(job)
		require.True(t, ok)
		require.Equal(t, "mail", l.Queue)
		require.Equal(t, dead.Death.Reason, l.Reason)
		require.Equal(t, dead.Attempts, l.Attempts)
		require.Len(t, l.History, len(dead.History))
		require.Equal(t, id, fetch(t, q, dlq.FailedJobs).ID)
	})
}

// Rule: a dead job is not forwarded to its own queue, even if it was forwarded to this file; the
// error names the alternatives, and the job stays.
func TestToQueueOntoTheVeryQueueIsRefused(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q, elsewhere := open(), open()
		own, came := makeDead(t, q, "mail", "a"), makeDead(t, elsewhere, "mail", "a")
		forward(t, elsewhere, q, "mail", 1)
		require.NoError(t, q.Settle(t.Context(), fetch(t, q, "mail").Abandon(pawl.ReasonExhausted, errDown)))
		var tally metrics.Tally
		opts := &dlq.ForwardOptions{Collector: &tally, Logger: hclog.NewNullLogger()}
		n, err := dlq.Forward(t.Context(), q, dlq.ToQueue(q, "mail"), opts, pawl.Filter{})
		require.ErrorIs(t, err, pawl.ErrConflict)
		require.ErrorContains(t, err, "retry it")
		require.Zero(t, n)
		require.Equal(t, []pawl.ID{own, came}, list(t, q, pawl.Filter{}))
		require.Equal(t, int64(2), tally.Snapshot().Total(metrics.JobsDLQFailed))
	})
}

// Rule: only a job of this very death counts as stored in the target.
func TestToQueueDistinguishesConflicts(t *testing.T) {
	for name, hold := range map[string]func(dead *pawl.Envelope) *pawl.Envelope{
		"an unrelated job": func(dead *pawl.Envelope) *pawl.Envelope {
			return &pawl.Envelope{ID: dead.ID, Kind: "a"}
		},
		"an earlier death of it": func(dead *pawl.Envelope) *pawl.Envelope {
			return &pawl.Envelope{ID: dead.ID, Kind: "a", Headers: map[string]string{
				dlq.HeaderReason: "exhausted", dlq.HeaderQueue: "mail", dlq.HeaderTime: "2031-01-01T00:00:00Z",
				dlq.HeaderAttempts: "1", dlq.HeaderFailures: "0", dlq.HeaderHistory: "[]",
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := inMemory(t), inMemory(t)
			id := makeDead(t, from, "mail", "a")
			require.NoError(t, withid.Enqueue(t.Context(), to, hold(get(t, from, id))))
			held := get(t, to, id)
			_, err := dlq.Forward(t.Context(), from, dlq.ToQueue(to, ""), quiet(), pawl.Filter{})
			require.ErrorIs(t, err, pawl.ErrConflict)
			require.Equal(t, []pawl.ID{id}, list(t, from, pawl.Filter{}))
			require.Equal(t, held, get(t, to, id))
		})
	}
}

// Rule: a job that the target refuses stays, and the others are forwarded.
func TestToQueueThatRefuses(t *testing.T) {
	from, to := inMemory(t), memory.New(&memory.Options{MaxPayload: 10, Logger: hclog.NewNullLogger()})
	large := failDead(t, from, &pawl.Envelope{Kind: "a", Queue: "mail", Payload: make([]byte, 11)}, pawl.ReasonExhausted, "no luck")
	small := makeDead(t, from, "mail", "a")
	n, err := dlq.Forward(t.Context(), from, dlq.ToQueue(to, ""), quiet(), pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
	require.Equal(t, 1, n)
	require.Equal(t, []pawl.ID{large}, list(t, from, pawl.Filter{}))
	get(t, to, small)

	_, err = dlq.Forward(t.Context(), from, dlq.ToQueue(to, "bad\x00"), quiet(), pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.NoError(t, to.Close())
	other := makeDead(t, from, "mail", "b")
	_, err = dlq.Forward(t.Context(), from, dlq.ToQueue(to, ""), quiet(), pawl.Filter{Kind: "b"})
	require.ErrorIs(t, err, pawl.ErrClosed)
	require.Equal(t, []pawl.ID{large, other}, list(t, from, pawl.Filter{}))
}

func quiet() *dlq.ForwardOptions { return &dlq.ForwardOptions{Logger: hclog.NewNullLogger()} }
