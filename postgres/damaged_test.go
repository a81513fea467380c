package postgres_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a job with a damaged record fails no call and no other job. The first call that meets it makes it dead with the
// reason corrupt; its payload stays, and it can be retried.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	fetches := func(t *testing.T, q *postgres.Queue, _ *pawl.Lease) {
		_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.ErrorIs(t, err, pawl.ErrEmpty)
	}
	for _, c := range []struct {
		name  string
		state pawl.State
		job   pawl.Envelope
		meet  func(t *testing.T, q *postgres.Queue, l *pawl.Lease)
	}{
		{"ready, by a fetch", pawl.Ready, pawl.Envelope{IdempotencyKey: "effect"}, fetches},
		{"past its deadline, by whoever calls", pawl.Delayed, pawl.Envelope{Delay: time.Hour, Deadline: time.Now().Add(time.Minute)},
			func(t *testing.T, q *postgres.Queue, _ *pawl.Lease) {
				require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "other", Delay: time.Hour}))
			}},
		{"delayed, by a list", pawl.Delayed, pawl.Envelope{Delay: time.Hour}, func(t *testing.T, q *postgres.Queue, _ *pawl.Lease) {
			for _, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
			}
		}},
		{"the holder of a key, by an enqueue", pawl.Ready, pawl.Envelope{UniqueKey: "key"}, func(t *testing.T, q *postgres.Queue, _ *pawl.Lease) {
			done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", UniqueKey: "key", Delay: time.Hour})
			require.NoError(t, err)
			require.False(t, done[0].Existing)
		}},
		{"leased, by its settlement", pawl.Leased, pawl.Envelope{IdempotencyKey: "effect"}, func(t *testing.T, q *postgres.Queue, l *pawl.Lease) {
			require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
		}},
		{"leased, by its expiry", pawl.Leased, pawl.Envelope{}, func(t *testing.T, q *postgres.Queue, l *pawl.Lease) {
			require.NoError(t, q.Close())
		}},
		{"dead, by a dry run", pawl.Dead, pawl.Envelope{}, func(t *testing.T, q *postgres.Queue, l *pawl.Lease) {
			errs, err := q.DryRun(t.Context(), pawl.Change{Verb: pawl.VerbRetry}, l.ID)
			require.NoError(t, err)
			require.Equal(t, []error{nil}, errs)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema, began := newSchema(t), time.Now()
			var later atomic.Int64 // of the clock, in nanoseconds
			now := func() time.Time { return began.Add(time.Duration(later.Load())) }
			clock := func(o *postgres.Options) { o.Now, o.Owner = now, "worker" }
			q := open(t, schema, noPoll, clock)
			e := &c.job
			e.Kind, e.Queue, e.Priority, e.Payload = "k", "q", 7, []byte("payload")
			require.NoError(t, withid.Enqueue(t.Context(), q, e))
			lease := &pawl.Lease{Envelope: e}
			before, err := q.Job(t.Context(), e.ID)
			require.NoError(t, err)
			if c.state == pawl.Leased || c.state == pawl.Dead {
				leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"q"}, Max: 1})
				require.NoError(t, err)
				lease = leases[0]
			}
			if c.state == pawl.Dead {
				require.NoError(t, q.Settle(t.Context(), lease.Abandon(pawl.ReasonPermanent, nil)))
			}
			execute(t, "UPDATE "+schema+".job SET record = substr(record, 2)")
			later.Store(int64(30 * time.Minute))
			c.meet(t, q, lease)
			require.NoError(t, q.Close())
			q = open(t, schema, noPoll, clock)
			dead, err := q.Job(t.Context(), e.ID)
			require.NoError(t, err)
			require.Equal(t, pawl.Dead, dead.State)
			require.Equal(t, pawl.ReasonCorrupt, dead.Death.Reason)
			require.Equal(t, []any{e.Kind, e.Queue, e.Priority, e.Payload, e.IdempotencyKey, before.Seq},
				[]any{dead.Kind, dead.Queue, dead.Priority, dead.Payload, dead.IdempotencyKey, dead.Seq})
			require.Contains(t, dead.History[len(dead.History)-1].Error, "damaged")
			require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".effect WHERE id IS NOT NULL"))
			if !dead.Deadline.IsZero() {
				return
			}
			require.NoError(t, q.Retry(t.Context(), e.ID, false))
			leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"q"}, Max: 1, Wait: pawl.WaitNot})
			require.NoError(t, err)
			require.Equal(t, e.Payload, leases[0].Payload)
		})
	}
}

// Rule: a job with a damaged record keeps the time since when it is ready, although its row has a tag in the place of
// that time. The tag is removed.
func TestDamagedRecordOfAJobWithATag(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	schema := newSchema(t)
	q := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderContinue}), func(o *postgres.Options) {
		o.Now = func() time.Time { return now }
	})
	first, second, keyless := keyed("first", "x"), keyed("second", "x"), keyed("k", "")
	require.NoError(t, withid.Enqueue(t.Context(), q, first, second, keyless))
	execute(t, "UPDATE "+schema+".job SET record = substr(record, 2) WHERE id <> '"+first.ID.String()+"'")
	for _, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
	}
	for _, e := range []*pawl.Envelope{second, keyless} {
		dead, err := q.Job(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Dead, dead.State)
		require.True(t, dead.NotBefore.Equal(now), "ready since %v", dead.NotBefore)
	}
	require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".job WHERE place = 3 AND due IS NOT NULL"))
	require.Contains(t, runnable(t, q), "first")
}
