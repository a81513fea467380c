package ticks

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/schedule"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}

// Rule: each tick of the schedules of killed processes has one decision, and each decision its job.
func TestFamily(t *testing.T) {
	r := Schedule.Run(t.Context(), harness.Plan{Goal: 10, Seed: 1})
	for _, v := range r.First {
		t.Errorf("seed %d: %v", v.Seed, v.Err)
	}
	require.GreaterOrEqual(t, r.Tried, 10)
}

func newClock(t *testing.T) *Clock {
	t.Helper()
	clock, err := OpenClock(filepath.Join(t.TempDir(), "clock"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, clock.Close()) })
	return clock
}

// Rule: the judge finds a tick without a decision, a tick with two, a lost job, and a job too many.
func TestJudgeFinds(t *testing.T) {
	for _, test := range []struct {
		rule   string
		doctor func(t *testing.T, q *bolt.Queue, l *Ledger)
		says   string
	}{
		{"nothing is wrong", func(*testing.T, *bolt.Queue, *Ledger) {}, ""},
		{"a trigger is lost", func(t *testing.T, _ *bolt.Queue, l *Ledger) {
			require.NoError(t, l.Hear("trigger every "+pawl.NewID(time.Now()).String()))
		}, "of a trigger is lost"},
		{"a job is lost", func(t *testing.T, q *bolt.Queue, _ *Ledger) {
			for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				require.NoError(t, q.Cancel(t.Context(), e.ID))
				require.NoError(t, q.Delete(t.Context(), e.ID))
				return
			}
		}, "is lost"},
		{"a job is there twice", func(t *testing.T, q *bolt.Queue, _ *Ledger) {
			for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: e.Kind, Headers: e.Headers})
				require.NoError(t, err)
				return
			}
		}, "belongs to no decision"},
		{"a tick has no decision", func(_ *testing.T, _ *bolt.Queue, l *Ledger) {
			e := l.books["every"].entries[2]
			e.First, e.Last = e.First.Add(-time.Hour), e.Last.Add(-time.Hour)
			l.books["every"].entries[1] = e
		}, "has become|has no decision"},
		{"a tick has two decisions", func(_ *testing.T, _ *bolt.Queue, l *Ledger) {
			b := l.books["every"]
			e := b.entries[1]
			e.N = b.newest + 1
			b.entries[e.N] = e
			b.newest++
		}, "history had|two decisions"},
		{"a process had an odd error", func(t *testing.T, _ *bolt.Queue, l *Ledger) {
			require.ErrorContains(t, l.Hear(`odd "broken"`), "broken")
		}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var l Ledger
			clock := newClock(t)
			q, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), options(clock))
			require.NoError(t, err)
			defer func() { require.NoError(t, q.Close()) }()
			require.NoError(t, CatchUp(t.Context(), q))
			require.NoError(t, clock.Move(20*time.Second))
			require.NoError(t, CatchUp(t.Context(), q))
			require.NoError(t, l.Judge(t.Context(), q))
			require.EqualValues(t, 20, l.books["every"].newest)
			test.doctor(t, q, &l)
			if err := l.Judge(t.Context(), q); test.says == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				require.Regexp(t, test.says, err.Error())
			}
		})
	}
}

// Rule: a process reports the errors that no kill explains.
func TestLifeReports(t *testing.T) {
	clock := newClock(t)
	q, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), options(clock))
	require.NoError(t, err)
	require.NoError(t, q.Close())
	var words []any
	l := &Life{Queue: q, Clock: clock, Emit: func(w ...any) { words = w }}
	_, err = schedule.Read(q).Get(context.Background(), "every")
	l.report(err)
	require.Equal(t, oddLine, words[0])
}
