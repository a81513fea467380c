package bolt

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// like returns a job that can be restored, with a change.
func like(change func(e *pawl.Envelope)) *pawl.Envelope {
	e := &pawl.Envelope{Kind: "k", State: pawl.Ready}
	if change != nil {
		change(e)
	}
	return e
}

// Rule: if a batch has a job that no queue would have stored, all of it is refused, the error
// identifies the job, and the file is unchanged.
func TestRestoreRefuses(t *testing.T) {
	q := openTest(t, &Options{MaxPayload: 1000})
	before := digest(t, q)
	now := time.Now()
	name := strings.Repeat("n", pawl.MaxNameBytes+1)
	dead := func(change func(d *pawl.Death)) func(e *pawl.Envelope) {
		return func(e *pawl.Envelope) {
			e.State, e.Death = pawl.Dead, &pawl.Death{Reason: "x", At: now}
			change(e.Death)
		}
	}
	for _, test := range []struct {
		rule   string
		change func(e *pawl.Envelope)
		want   error
		says   string
	}{
		{"no kind", func(e *pawl.Envelope) { e.Kind = "" }, pawl.ErrInvalid, "kind"},
		{"a kind that is too long", func(e *pawl.Envelope) { e.Kind = name }, pawl.ErrInvalid, "kind"},
		{"a kind with a NUL", func(e *pawl.Envelope) { e.Kind = "a\x00" }, pawl.ErrInvalid, "kind"},
		{"a queue that is too long", func(e *pawl.Envelope) { e.Queue = name }, pawl.ErrInvalid, "queue"},
		{"an origin that is too long", func(e *pawl.Envelope) { e.Origin = name }, pawl.ErrInvalid, "queue"},
		{"a unique key that is too long", func(e *pawl.Envelope) { e.UniqueKey = name }, pawl.ErrInvalid, "unique key"},
		{"an idempotency key that is too long", func(e *pawl.Envelope) { e.IdempotencyKey = name }, pawl.ErrInvalid, "idempotency key"},
		{"a key ID that is too long", func(e *pawl.Envelope) { e.KeyID = name }, pawl.ErrInvalid, "key ID"},
		{"a signature that is too long", func(e *pawl.Envelope) { e.Signature = make([]byte, 1<<16) }, pawl.ErrInvalid, "signature"},
		{"states without a key", func(e *pawl.Envelope) { e.UniqueIn = pawl.States() }, pawl.ErrInvalid, "unique key"},
		{"headers that are too large", func(e *pawl.Envelope) { e.Headers = map[string]string{"a": strings.Repeat("v", pawl.MaxHeaderBytes)} }, pawl.ErrInvalid, "headers"},
		{"a policy that is none", func(e *pawl.Envelope) { p := pawl.Exponential(-1, -1); e.Policy = &p }, pawl.ErrInvalid, ""},
		{"a payload that is too large", func(e *pawl.Envelope) { e.Payload = make([]byte, 1001) }, pawl.ErrPayloadTooLarge, "1001"},
		{"retries out of bounds", func(e *pawl.Envelope) { e.MaxRetries = pawl.MaxMaxRetries + 1 }, pawl.ErrInvalid, "max retries"},
		{"a negative timeout", func(e *pawl.Envelope) { e.Timeout = -1 }, pawl.ErrInvalid, "timeout"},
		{"a negative retention", func(e *pawl.Envelope) { e.Retain = -1 }, pawl.ErrInvalid, "retention"},
		{"negative attempts", func(e *pawl.Envelope) { e.Attempts = -1 }, pawl.ErrInvalid, "attempts"},
		{"too many attempts", func(e *pawl.Envelope) { e.Attempts = driver.MaxCount + 1 }, pawl.ErrInvalid, "attempts"},
		{"negative crashes", func(e *pawl.Envelope) { e.Crashes = -1 }, pawl.ErrInvalid, "crashes"},
		{"too many crashes", func(e *pawl.Envelope) { e.Crashes = driver.MaxCount + 1 }, pawl.ErrInvalid, "crashes"},
		{"negative failures", func(e *pawl.Envelope) { e.Failures = -1 }, pawl.ErrInvalid, "failures"},
		{"failures without a history", func(e *pawl.Envelope) { e.Failures = 1 }, pawl.ErrInvalid, "history"},
		{"a history without failures", func(e *pawl.Envelope) { e.History = make([]pawl.Failure, 1) }, pawl.ErrInvalid, "history"},
		{"a history that is too long", func(e *pawl.Envelope) { e.Failures, e.History = 300, make([]pawl.Failure, 201) }, pawl.ErrInvalid, "history"},
		{"a text that is too long", func(e *pawl.Envelope) {
			e.Failures, e.History = 1, []pawl.Failure{{Error: strings.Repeat("e", pawl.MaxErrorText+1)}}
		}, pawl.ErrInvalid, "history"},
		{"a negative attempt", func(e *pawl.Envelope) { e.Failures, e.History = 1, []pawl.Failure{{Attempt: -1}} }, pawl.ErrInvalid, "history"},
		{"no state", func(e *pawl.Envelope) { e.State = "" }, pawl.ErrInvalid, "state"},
		{"a state that is none", func(e *pawl.Envelope) { e.State = "sleeping" }, pawl.ErrInvalid, "state"},
		{"a dead job without a death", func(e *pawl.Envelope) { e.State = pawl.Dead }, pawl.ErrInvalid, "death"},
		{"a death of one that lives", func(e *pawl.Envelope) { e.Death = &pawl.Death{Reason: "x", At: now} }, pawl.ErrInvalid, "death"},
		{"a death without a reason", dead(func(d *pawl.Death) { d.Reason = "" }), pawl.ErrInvalid, "death"},
		{"a reason that is too long", dead(func(d *pawl.Death) { d.Reason = pawl.Reason(name) }), pawl.ErrInvalid, "death"},
		{"a death without a time", dead(func(d *pawl.Death) { d.At = time.Time{} }), pawl.ErrInvalid, "death"},
		{"a completed record without a time", func(e *pawl.Envelope) { e.State, e.Retain = pawl.Completed, time.Hour }, pawl.ErrInvalid, "completed"},
		{"a completed record that is not kept", func(e *pawl.Envelope) { e.State, e.Completed = pawl.Completed, now }, pawl.ErrInvalid, "retention"},
		{"a time of success of one that waits", func(e *pawl.Envelope) { e.Completed, e.Retain = now, time.Hour }, pawl.ErrInvalid, "completed"},
	} {
		err := q.Restore(t.Context(), []*pawl.Envelope{like(nil), like(test.change)}, []driver.Effect{{Kind: "k", Key: "e", Until: now.Add(time.Hour)}})
		require.ErrorIs(t, err, test.want, test.rule)
		require.ErrorContains(t, err, "job 1: ", test.rule)
		require.ErrorContains(t, err, test.says, test.rule)
		require.Equal(t, before, digest(t, q), test.rule)
	}
	require.ErrorIs(t, q.Restore(t.Context(), []*pawl.Envelope{nil}, nil), pawl.ErrInvalid)
	for _, e := range []driver.Effect{{Kind: "", Key: "e", Until: now}, {Kind: name, Key: "e", Until: now}, {Kind: "k", Key: "", Until: now}, {Kind: "k", Key: name, Until: now}} {
		err := q.Restore(t.Context(), nil, []driver.Effect{{Kind: "k", Key: "e", Until: now.Add(time.Hour)}, e})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "effect 1: ")
	}
	require.Equal(t, before, digest(t, q))
}

// Rule: one call accepts what one commit accepts.
func TestRestoreIsBounded(t *testing.T) {
	q := openAt(t, memoryFolder(t)+"/jobs.db", &Options{MaxPayload: pawl.MaxBatchBytes})
	many := make([]*pawl.Envelope, pawl.MaxBatchJobs+1)
	for i := range many {
		many[i] = like(nil)
	}
	require.ErrorIs(t, q.Restore(t.Context(), many, nil), pawl.ErrBatchTooLarge)
	require.ErrorIs(t, q.Restore(t.Context(), nil, make([]driver.Effect, pawl.MaxBatchJobs+1)), pawl.ErrBatchTooLarge)
	large := like(func(e *pawl.Envelope) { e.Payload = make([]byte, pawl.MaxBatchBytes) })
	history := like(func(e *pawl.Envelope) { e.Failures, e.History = 1, make([]pawl.Failure, 1) })
	require.ErrorIs(t, q.Restore(t.Context(), []*pawl.Envelope{large, history}, nil), pawl.ErrBatchTooLarge, "histories count")
	require.NoError(t, q.Restore(t.Context(), many[1:], nil))
	require.Equal(t, pawl.MaxBatchJobs, countsOf(t, q, pawl.DefaultQueue).Ready)
}

// Rule: a taken ID or unique key refuses the whole call and leaves the file unchanged. A key is
// taken if each of the two jobs would block the other.
func TestRestoreConflicts(t *testing.T) {
	now := time.Now()
	keyed := func(state pawl.State, in ...pawl.State) *pawl.Envelope {
		return like(func(e *pawl.Envelope) {
			e.ID = pawl.NewID(now)
			if e.UniqueKey, e.UniqueIn, e.State = "u", in, state; state == pawl.Dead {
				e.Death = &pawl.Death{Reason: "x", At: now}
			}
			if state == pawl.Completed {
				e.Completed, e.Retain = now, time.Hour
			}
			if state == pawl.Delayed {
				e.NotBefore = now.Add(time.Hour)
			}
		})
	}
	other := like(func(e *pawl.Envelope) { e.ID = pawl.NewID(now) })
	for _, test := range []struct {
		rule   string
		there  []*pawl.Envelope
		comes  *pawl.Envelope
		taken  bool
		holder int // which job has the key afterwards: an index of there, or -1 for the restored job
	}{
		{"an ID of the file", []*pawl.Envelope{other}, other, true, 0},
		{"a ready job beside a ready one", []*pawl.Envelope{keyed(pawl.Ready)}, keyed(pawl.Ready), true, 0},
		{"a leased job beside a delayed one", []*pawl.Envelope{keyed(pawl.Delayed)}, keyed(pawl.Leased), true, 0},
		{"a ready job beside a dead one", []*pawl.Envelope{keyed(pawl.Dead)}, keyed(pawl.Ready), false, -1},
		{"a ready job that dead ones keep out", []*pawl.Envelope{keyed(pawl.Dead)}, keyed(pawl.Ready, pawl.Ready, pawl.Dead), true, 0},
		{"a dead job beside a ready job", []*pawl.Envelope{keyed(pawl.Ready)}, keyed(pawl.Dead), false, 0},
		{"a completed record beside a ready job", []*pawl.Envelope{keyed(pawl.Ready)}, keyed(pawl.Completed), false, 0},
		{"a dead job beside a dead job", []*pawl.Envelope{keyed(pawl.Dead)}, keyed(pawl.Dead), false, -1},
		{"two of one call that keep each other out", nil, nil, false, 1},
	} {
		q := openTest(t, nil)
		there := test.there
		if test.comes == nil {
			there = []*pawl.Envelope{keyed(pawl.Ready), keyed(pawl.Delayed), keyed(pawl.Dead)}
		}
		require.NoError(t, q.Restore(t.Context(), there, nil), test.rule)
		before := digest(t, q)
		if test.comes != nil {
			comes := *test.comes
			err := q.Restore(t.Context(), []*pawl.Envelope{like(nil), &comes}, []driver.Effect{{Kind: "k", Key: "e", Until: now.Add(time.Hour)}})
			if test.taken {
				require.ErrorIs(t, err, pawl.ErrConflict, test.rule)
				require.ErrorContains(t, err, "job 1, ", test.rule)
				require.Equal(t, before, digest(t, q), test.rule)
				require.NoError(t, q.Close())
				continue
			}
			require.NoError(t, err, test.rule)
			there = append(there, &comes)
		}
		holder := there[(test.holder+len(there))%len(there)]
		e := &pawl.Envelope{Kind: "k", UniqueKey: "u", UniqueIn: pawl.States()}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		require.Equal(t, holder.ID, e.ID, test.rule)
		require.NoError(t, q.Close())
	}
	q := openTest(t, nil)
	id := pawl.NewID(now)
	twice := func() *pawl.Envelope { return like(func(e *pawl.Envelope) { e.ID = id }) }
	require.ErrorIs(t, q.Restore(t.Context(), []*pawl.Envelope{twice(), twice()}, nil), pawl.ErrConflict, "an ID twice in a call")
	e := like(nil)
	require.ErrorIs(t, q.Restore(t.Context(), []*pawl.Envelope{e, e}, nil), pawl.ErrConflict, "an envelope twice in a call")
	require.True(t, e.ID.IsZero(), "what is refused is not changed")
}

// Rule: a restore is durable, and its context can withdraw it before it begins.
func TestRestoreIsOneTransition(t *testing.T) {
	path := t.TempDir() + "/jobs.db"
	q := openAt(t, path, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, q.Restore(ctx, []*pawl.Envelope{like(nil)}, nil), pawl.ErrNotAccepted)
	e := like(func(e *pawl.Envelope) { e.ID, e.Payload = pawl.NewID(time.Now()), make([]byte, 2*largePayload) })
	require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{e}, nil))
	require.NoError(t, q.Close())
	again := openAt(t, path, nil)
	l := leaseOne(t, again)
	require.Equal(t, e.ID, l.ID)
	require.Greater(t, find(t, again, add(t, again, nil).ID).Seq, l.Seq, fmt.Sprint("the sequence goes on behind ", l.Seq))
}
