package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// rare adds rare states: 1 is completed and retained, 2 leased and cancelled, 3 dead with a
// unique key that 4 has taken, 5 dead past its deadline. 4 has a deadline and both keys, and
// queue slow is paused.
func rare(f *file) {
	f.t.Helper()
	ctx := context.Background()
	f.add(pawl.Envelope{Queue: "email", MaxRetries: 3, Retain: 24 * time.Hour})
	f.pass(time.Hour)
	require.NoError(f.t, f.q.Settle(ctx, f.fetch("email").Ack()))
	f.add(pawl.Envelope{Queue: "email"})
	f.fetch("email")
	require.NoError(f.t, f.q.Cancel(ctx, id(2)))
	f.kill(pawl.Envelope{Queue: "slow", UniqueKey: "invoice 17"}, pawl.ReasonPermanent, "no")
	f.add(pawl.Envelope{Queue: "slow", UniqueKey: "invoice 17", IdempotencyKey: "pay 17", Deadline: today.Add(2 * time.Hour)})
	f.kill(pawl.Envelope{Queue: "other", Deadline: today.Add(-time.Minute)}, pawl.ReasonPermanent, "no")
	require.NoError(f.t, f.q.Pause(ctx, "slow"))
	f.goTo(today)
}

// Stats shows completed records, and which queues are paused.
func TestStatsOfPausedAndCompleted(t *testing.T) {
	build(t, rare)
	got := jobctl(t, "--db", "app.db", "stats")
	require.Equal(t, `QUEUE  READY  DELAYED  LEASED  DEAD  COMPLETED  OLDEST  STATE
email      0        0       1     0          1       -  stopped
slow       1        0       0     1          0      1h  PAUSED
other      0        0       0     1          0       -  stopped
`, got.stdout[strings.Index(got.stdout, "\n")+1:])

	var v statsView
	require.NoError(t, json.Unmarshal([]byte(jobctl(t, "--db", "app.db", "stats", "-o", "json").stdout), &v))
	require.Equal(t, []bool{false, true, false}, []bool{v.Queues[0].Paused, v.Queues[1].Paused, v.Queues[2].Paused})
	require.Equal(t, 1, v.Queues[0].Completed)
	require.NotNil(t, v.FreeBytes)
	require.Positive(t, *v.FreeBytes)
	require.Less(t, *v.FreeBytes, v.SizeBytes)
}

// A completed job is listed with the time of its success, and can be selected by its state.
func TestJobListOfCompleted(t *testing.T) {
	build(t, rare)
	require.Equal(t, outcomeOf{0, `ID                                    STATE      QUEUE  KIND       RUNS  AGE  WHEN
019caa00-0000-7000-8000-000000000001  completed  email  mail.send   1/4   3h  2h ago
`, ""}, jobctl(t, "--db", "app.db", "job", "list", "-s", "completed"))
}

// A program gets the deadline, the keys and the flag of a cancelled job; null if there is none.
func TestRareFieldsAsJSON(t *testing.T) {
	build(t, rare)
	got := map[string]admin.Job{}
	for line := range strings.Lines(jobctl(t, "--db", "app.db", "job", "list", "-o", "jsonl").stdout) {
		var v admin.Job
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		got[v.ID] = v
	}
	require.Equal(t, "2026-03-01T10:00:00.000000000Z", got[id(1).String()].CompletedAt.String())
	require.Equal(t, "completed", got[id(1).String()].State)
	require.True(t, got[id(2).String()].Cancelled)
	require.Equal(t, "leased", got[id(2).String()].State)
	four := got[id(4).String()]
	require.Equal(t, admin.Text("invoice 17"), *four.UniqueKey)
	require.Equal(t, admin.Text("pay 17"), *four.IdempotencyKey)
	require.Equal(t, stamp(today.Add(2*time.Hour)), four.Deadline.String())
	require.False(t, four.Cancelled)
	require.True(t, four.CompletedAt.IsZero())
	require.Nil(t, got[id(1).String()].UniqueKey)
	require.Nil(t, got[id(1).String()].IdempotencyKey)
	require.True(t, got[id(1).String()].Deadline.IsZero())
}

// A person sees them too.
func TestJobShowOfRareFields(t *testing.T) {
	build(t, rare)
	for n, want := range map[int][]string{
		1: {"state       completed\n", "attempts    1 of 4\n", "completed   2026-03-01T10:00:00.000Z  (2h ago)\n"},
		2: {"state       leased and cancelled; its process is gone, the next open makes it a dead job\n"},
		4: {"deadline    2026-03-01T14:00:04.000Z  (in 2h)\n", "unique      invoice 17\n", "idempotency pay 17\n"},
	} {
		got := jobctl(t, "--db", "app.db", "job", "show", id(n).String())
		require.Equal(t, exitOK, got.code)
		for _, line := range want {
			require.Contains(t, got.stdout, line)
		}
	}
}

const cancelledNote = "note: 1 leased job whose process had ended: dead now (cancelled, or past a deadline)\n"

// A dead job whose unique key is taken, or whose deadline has passed, stays dead; the error
// differs from that for a job that is not dead.
func TestRetryOfWhatMustStayDead(t *testing.T) {
	build(t, rare)
	for i, c := range []struct {
		n    int
		text string
	}{
		{3, "job " + id(3).String() + ": conflict: job " + id(4).String() + ", which is ready, has its unique key"},
		{5, "job " + id(5).String() + ": conflict: its deadline "},
	} {
		got := jobctl(t, "--db", "app.db", "dead", "retry", id(c.n).String())
		require.Equal(t, exitConflict, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, c.text)
		require.Contains(t, got.stderr, "\n  It stays dead; 'jobctl job show' has its unique key and its deadline.\n")
		require.Equal(t, i == 0, strings.HasPrefix(got.stderr, cancelledNote), "told once, by the open that found it")

		got = jobctl(t, "--db", "app.db", "-o", "jsonl", "dead", "retry", id(c.n).String())
		var v resultView
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &v))
		require.Equal(t, "conflict", v.Result)
		require.Contains(t, *v.Error, c.text)
		require.Equal(t, pawl.Dead, look(t, id(c.n)).State)
	}
	got := jobctl(t, "--db", "app.db", "-o", "jsonl", "dead", "retry", id(4).String())
	require.Contains(t, got.stdout, `"result":"not_dead"`)
	require.Equal(t, exitConflict, got.code)
}

// A change by filters reports such a dead job, because it needs attention. The others are
// retried. Jobs that became dead by opening the file were not selected.
func TestRetryAllReportsWhatMustStayDead(t *testing.T) {
	build(t, func(f *file) {
		rare(f)
		f.kill(pawl.Envelope{Queue: "other"}, pawl.ReasonPermanent, "no")
	})
	got := jobctl(t, "--db", "app.db", "dead", "retry", "--all", "-y")
	require.Equal(t, exitConflict, got.code)
	require.Equal(t, "retried 1, skipped 2\n", got.stdout)
	require.Contains(t, got.stderr, "error: 2 of 3 jobs could not be retried:\n")
	require.Equal(t, pawl.Ready, look(t, id(6)).State)
	require.Equal(t, pawl.Dead, look(t, id(2)).State)
	require.Equal(t, pawl.ReasonCancelled, look(t, id(2)).Death.Reason)
}
