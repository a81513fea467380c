package bolt

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/metrics"
)

// carry restores all jobs and effects of one queue in another, in batches of at most n.
func carry(t *testing.T, from, to *Queue, n int) {
	t.Helper()
	for after := ""; ; {
		part, err := from.List(t.Context(), pawl.Filter{}, after, n)
		require.NoError(t, err)
		var jobs []*pawl.Envelope
		for _, job := range part.Jobs {
			require.NoError(t, job.Err)
			jobs = append(jobs, job.Job)
		}
		require.NoError(t, to.Restore(t.Context(), jobs, nil))
		if after = part.Next; after == "" {
			break
		}
	}
	for after := ""; ; {
		effects, next, err := from.Effects(t.Context(), after, n)
		require.NoError(t, err)
		require.NoError(t, to.Restore(t.Context(), nil, effects))
		if after = next; after == "" {
			return
		}
	}
}

// asRestored returns what a job of another queue must be after its restore.
func asRestored(e *pawl.Envelope, seq uint64) *pawl.Envelope {
	want := *e
	want.Seq, want.LeasedSince = seq, time.Time{}
	if want.State == pawl.Leased {
		want.State, want.BackoffSince = pawl.Ready, time.Time{}
	}
	return &want
}

// Rule: jobs of all states with everything they have, except leased ones, are the same jobs in
// another file. So are effects. Both files continue in the same way.
func TestRestoreLosesNothing(t *testing.T) {
	for seed := range uint64(max(3, race.Fewer(6))) { // three seeds cover all sizes
		synctest.Test(t, func(t *testing.T) {
			from, to := openAt(t, memoryFolder(t)+"/from.db", nil), openAt(t, memoryFolder(t)+"/to.db", nil)
			fillMixed(t, from, seed)
			carry(t, from, to, []int{1, 10, 1000}[seed%3])
			checkNow(t, to)
			for _, queue := range []string{"default", "a", "ab", "\xff", "failing"} {
				want := countsOf(t, from, queue)
				want.Ready, want.Leased = want.Ready+want.Leased, 0
				require.Equal(t, want, countsOf(t, to, queue))
			}
			before, after := all(t, from, pawl.Filter{}), all(t, to, pawl.Filter{})
			require.Greater(t, len(before), 30, "the test needs jobs")
			states, leased := make(map[pawl.State]int), make(map[pawl.ID]bool)
			for i, e := range before {
				require.Equal(t, asRestored(e, uint64(i+1)), after[i])
				states[e.State]++
				leased[e.ID] = e.State == pawl.Leased
			}
			require.Len(t, states, len(pawl.States()), "the test needs jobs of each state")
			for _, state := range []pawl.State{pawl.Ready, pawl.Delayed, pawl.Dead, pawl.Completed} {
				for _, queue := range []string{"default", "a", "ab", "\xff", "failing"} {
					order := slices.DeleteFunc(all(t, to, pawl.Filter{State: state, Queue: queue}), func(e *pawl.Envelope) bool { return leased[e.ID] })
					require.Equal(t, idsOf(all(t, from, pawl.Filter{State: state, Queue: queue})), idsOf(order), "the order of %s jobs", state)
				}
			}
			require.Equal(t, effectsOf(t, &from.reader, 100), effectsOf(t, &to.reader, 100))

			pass(50 * time.Hour)
			synctest.Wait()
			want := make(map[pawl.ID]pawl.State)
			for _, e := range all(t, from, pawl.Filter{}) {
				want[e.ID] = e.State
			}
			for _, e := range all(t, to, pawl.Filter{}) {
				require.Equal(t, want[e.ID], e.State, "%+v", e)
				delete(want, e.ID)
			}
			require.Empty(t, want, "jobs that are not in the other file")
			checkNow(t, to)
		})
	}
}

// Rule: a restored job can do everything that it could: a retry keeps its history, a dead job
// can be retried, a completed record is removed in time, and a job whose effect is done is
// skipped.
func TestRestoredJobsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		now := time.Now()
		history := []pawl.Failure{{Attempt: 1, At: now.Add(-time.Hour), Error: "boom"}}
		dead := &pawl.Envelope{ID: pawl.NewID(now), Kind: "dead", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonExhausted, At: now}, Attempts: 1, Failures: 1, History: history}
		retry := &pawl.Envelope{ID: pawl.NewID(now), Kind: "retry", State: pawl.Delayed, NotBefore: now.Add(time.Hour), BackoffSince: now.Add(-time.Hour), Attempts: 1, Failures: 1, History: history}
		done := &pawl.Envelope{ID: pawl.NewID(now), Kind: "done", State: pawl.Completed, Completed: now.Add(-time.Hour), Retain: 2 * time.Hour}
		skipped := &pawl.Envelope{ID: pawl.NewID(now), Kind: "skipped", State: pawl.Ready, IdempotencyKey: "e"}
		require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{dead, retry, done, skipped}, []driver.Effect{{Kind: "skipped", Key: "e", Until: now.Add(time.Hour)}}))
		require.Empty(t, fetch(t, q, 9))
		require.Nil(t, find(t, q, skipped.ID))
		require.NoError(t, q.Retry(t.Context(), dead.ID, true))
		l := leaseOne(t, q)
		require.Equal(t, 1, l.Attempts)
		require.NoError(t, q.Settle(t.Context(), l.Nack(100*time.Hour, errBoom)))
		require.Len(t, find(t, q, dead.ID).History, 2)
		pass(time.Hour)
		synctest.Wait()
		require.Nil(t, find(t, q, done.ID))
		l = leaseOne(t, q)
		require.Equal(t, retry.ID, l.ID)
		require.True(t, l.BackoffSince.Equal(now.Add(-time.Hour)))
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Empty(t, effectsOf(t, &q.reader, 9), "the effect is over")
	})
}

// Rule: a history whose middle was dropped continues where it was.
func TestRestoredHistoryGoesOn(t *testing.T) {
	q := openTest(t, nil)
	const failures = pawl.HistoryKeepHead + pawl.HistoryKeepTail + 7
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", State: pawl.Ready, Attempts: failures, Failures: failures}
	for n := range failures {
		if kept(n, failures) {
			e.History = append(e.History, driver.NewFailure(n+1, time.Now(), "of the past"))
		}
	}
	require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{e}, nil))
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errBoom)))
	got := find(t, q, e.ID)
	require.Equal(t, failures+1, got.Failures)
	for i, f := range got.History {
		want := i + 1
		if i >= pawl.HistoryKeepHead {
			want += 8
		}
		require.Equal(t, want, f.Attempt)
	}
}

// Rule: after the restore a job has the state that time or a cancel has given it in the
// meantime, and fields that an envelope omits are filled in.
func TestRestoreOfWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		in := func(d time.Duration) time.Time { return now.Add(d) }
		for _, test := range []struct {
			rule  string
			job   pawl.Envelope
			state pawl.State // after the restore
			look  func(t *testing.T, e *pawl.Envelope)
		}{
			{"a delayed job whose time has come is ready since then", pawl.Envelope{State: pawl.Delayed, NotBefore: in(-time.Hour)}, pawl.Ready,
				func(t *testing.T, e *pawl.Envelope) { require.True(t, e.NotBefore.Equal(in(-time.Hour))) }},
			{"a ready job is not ready in the future", pawl.Envelope{State: pawl.Ready, NotBefore: in(time.Hour)}, pawl.Ready,
				func(t *testing.T, e *pawl.Envelope) { require.True(t, e.NotBefore.Equal(now)) }},
			{"a ready job stays in its place", pawl.Envelope{State: pawl.Ready, NotBefore: in(-time.Hour)}, pawl.Ready,
				func(t *testing.T, e *pawl.Envelope) { require.True(t, e.NotBefore.Equal(in(-time.Hour))) }},
			{"a leased job is ready, and no crash is counted", pawl.Envelope{State: pawl.Leased, NotBefore: in(-time.Hour), Crashes: 2, BackoffSince: in(-2 * time.Hour)}, pawl.Ready,
				func(t *testing.T, e *pawl.Envelope) {
					require.Equal(t, 2, e.Crashes)
					require.Zero(t, e.BackoffSince)
					require.True(t, e.NotBefore.Equal(in(-time.Hour)))
				}},
			{"a cancelled lease is dead", pawl.Envelope{State: pawl.Leased, Cancelled: true}, pawl.Dead,
				func(t *testing.T, e *pawl.Envelope) {
					require.Equal(t, pawl.ReasonCancelled, e.Death.Reason)
					require.False(t, e.Cancelled)
				}},
			{"a cancelled job that waits is dead", pawl.Envelope{State: pawl.Ready, Cancelled: true}, pawl.Dead, nil},
			{"a job past its deadline is dead", pawl.Envelope{State: pawl.Ready, Deadline: in(-time.Second)}, pawl.Dead,
				func(t *testing.T, e *pawl.Envelope) { require.Equal(t, pawl.ReasonDeadline, e.Death.Reason) }},
			{"a retry whose deadline comes before it is delayed", pawl.Envelope{State: pawl.Delayed, NotBefore: in(time.Hour), Deadline: in(time.Minute)}, pawl.Delayed, nil},
			{"a dead job past its deadline is as it died", pawl.Envelope{State: pawl.Dead, Deadline: in(-time.Second), Death: &pawl.Death{Reason: "x", At: in(-time.Hour)}}, pawl.Dead,
				func(t *testing.T, e *pawl.Envelope) {
					require.True(t, e.Death.At.Equal(in(-time.Hour)))
					require.EqualValues(t, "x", e.Death.Reason)
				}},
			{"a record whose retention is over goes", pawl.Envelope{State: pawl.Completed, Completed: in(-time.Hour), Retain: time.Minute}, "", nil},
			{"what is for an enqueue alone is not looked at", pawl.Envelope{State: pawl.Ready, Delay: time.Hour, OnConflict: pawl.Replace}, pawl.Ready, nil},
			{"what is left out is filled in", pawl.Envelope{State: pawl.Ready}, pawl.Ready,
				func(t *testing.T, e *pawl.Envelope) {
					require.Equal(t, [2]string{pawl.DefaultQueue, pawl.DefaultQueue}, [2]string{e.Queue, e.Origin})
					require.True(t, e.Created.Equal(now) && e.NotBefore.Equal(now))
					require.False(t, e.ID.IsZero())
				}},
		} {
			q := openTest(t, nil)
			test.job.Kind = "k"
			require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{&test.job}, nil), test.rule)
			synctest.Wait()
			jobs := all(t, q, pawl.Filter{})
			if test.state == "" {
				require.Empty(t, jobs, test.rule)
				continue
			}
			require.Len(t, jobs, 1, test.rule)
			e := jobs[0]
			require.Equal(t, test.state, e.State, test.rule)
			require.NotZero(t, e.Seq, "it is filled in")
			if test.look != nil {
				test.look(t, e)
			}
			require.NoError(t, q.Close())
		}
	})
}

// Rule: a restore reports each job as enqueued, and reports a death only if a job dies: a job
// that is already dead does not die again.
func TestRestoreEmitsEvents(t *testing.T) {
	var events eventLog
	var log lockedBuffer
	var tally metrics.Tally
	q := openTest(t, &Options{OnEvent: events.event, Collector: &tally, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Error})})
	now := time.Now()
	require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{
		{Kind: "k", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonExhausted, At: now}},
		{Kind: "k", State: pawl.Completed, Completed: now, Retain: time.Hour},
		{Kind: "k", State: pawl.Ready}, {Kind: "k", State: pawl.Leased},
	}, nil))
	require.Equal(t, []string{"enqueued", "enqueued", "enqueued", "enqueued"}, events.take())
	require.Empty(t, tally.Snapshot().Counts)
	require.Empty(t, log.String())
	require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{{Kind: "k", State: pawl.Leased, Cancelled: true}}, nil))
	require.Equal(t, []string{"enqueued", "died"}, events.take())
	require.EqualValues(t, 1, tally.Snapshot().Total(metrics.JobsCancelled))
	require.Equal(t, 1, strings.Count(log.String(), "[ERROR]"))
}

// Rule: of two times until which an effect is done the later counts, and an expired one is
// ignored.
func TestRestoreOfEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		now := time.Now()
		until := func() (hours []time.Duration) {
			for _, e := range effectsOf(t, &q.reader, 9) {
				hours = append(hours, e.Until.Sub(now)/time.Hour)
			}
			return hours
		}
		at := func(hours time.Duration) driver.Effect {
			return driver.Effect{Kind: "k", Key: "e", Until: now.Add(hours * time.Hour)}
		}
		for _, step := range []struct {
			given []driver.Effect
			want  []time.Duration
		}{
			{[]driver.Effect{at(-1), at(0), {Kind: "k", Key: "e"}}, nil},
			{[]driver.Effect{at(2)}, []time.Duration{2}},
			{[]driver.Effect{at(1)}, []time.Duration{2}},
			{[]driver.Effect{at(4), at(3)}, []time.Duration{4}},
		} {
			require.NoError(t, q.Restore(t.Context(), nil, step.given))
			require.Equal(t, step.want, until())
			checkNow(t, q)
		}
		pass(4 * time.Hour)
		synctest.Wait()
		require.Empty(t, until())
		require.NoError(t, q.Restore(t.Context(), nil, nil), "nothing to restore")
	})
}
