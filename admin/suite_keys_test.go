package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Operators get the reasons of the engine, wherever the queue is.
func TestSuiteKeys(t *testing.T) { runSuite(t, keyCases) }

// keyed adds two jobs of key "a \xff" to queue sync, which runs one job of a key at a time, and leases
// the first.
func keyed(f *fixture) {
	require.NoError(f.t, f.q.Close())
	q, err := bolt.Open(f.path, &bolt.Options{
		Logger: hclog.NewNullLogger(), Now: f.now, Limits: map[string]pawl.Limits{"sync": {RunningPerKey: 1}},
	})
	require.NoError(f.t, err)
	f.q = q
	f.t.Cleanup(func() { require.NoError(f.t, q.Close()) })
	for _, kind := range []string{"first", "second"} {
		f.add(pawl.Envelope{Queue: "sync", Kind: kind, Key: "a \xff"})
	}
	_, err = q.Fetch(f.t.Context(), pawl.Request{Queues: []string{"sync"}, Max: 9, Wait: pawl.WaitNot})
	require.NoError(f.t, err)
	_, err = q.Fetch(f.t.Context(), pawl.Request{Queues: []string{"sync"}, Max: 9, Wait: pawl.WaitNot})
	require.ErrorIs(f.t, err, pawl.ErrEmpty) // and the second is blocked
}

var keyCases = []suiteCase{
	{"the jobs that wait for a job are those of the engine", func(f *fixture) {
		f.add(pawl.Envelope{Kind: "first"})
		f.add(pawl.Envelope{Kind: "near", After: []pawl.ID{f.ids["first"]}})
		f.add(pawl.Envelope{Kind: "any", AfterAny: []pawl.ID{f.ids["first"]}})
		f.add(pawl.Envelope{Kind: "far", After: []pawl.ID{f.ids["near"]}})
	}, nil, func(t *testing.T, s *suiteTest) {
		all, err := s.Dependents(t.Context(), s.ids["first"])
		require.NoError(t, err)
		require.Equal(t, []pawl.ID{s.ids["near"], s.ids["far"]}, all)
		all, err = s.Dependents(t.Context(), pawl.ID{1})
		require.NoError(t, err)
		require.Empty(t, all)
	}},
	{"what keeps a job from running names its limit and the jobs that run, and whether a process has the queue open", keyed, nil, func(t *testing.T, s *suiteTest) {
		all, err := s.Why(t.Context(), s.ids["second"])
		require.NoError(t, err)
		want := []pawl.Obstacle{
			{What: pawl.ByNoWorker, Queue: "sync", Kind: "second"},
			{What: pawl.ByKey, Queue: "sync", Kind: "second", Key: "a \xff", Running: 1, Limit: 1, Holders: []pawl.ID{s.ids["first"]}},
		}
		if !s.live {
			want = append(want[1:], pawl.Obstacle{What: pawl.ByStop})
		}
		require.Equal(t, want, all)
		all, err = s.Why(t.Context(), s.ids["first"]) // leased
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, s.live, all[0].What == pawl.IsRunning)
		require.Equal(t, !s.live, all[0].What == pawl.ByStop)
		_, err = s.Why(t.Context(), pawl.ID{1})
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
	{"limits that an operator sets are in force, beside those of the program, until they are reset", keyed, nil, func(t *testing.T, s *suiteTest) {
		limits := func() (pawl.Limits, *pawl.Limits) {
			stats, err := s.Stats(t.Context())
			require.NoError(t, err)
			return stats.Queues[0].Limits, stats.Queues[0].Declared
		}
		set := pawl.Limits{Running: 7, RunningPerKey: 2, RatePerKey: pawl.Rate{Starts: 5, Per: time.Minute, Burst: 2}, MaxWaiting: 9}
		require.NoError(t, s.SetLimits(t.Context(), "sync", &set))
		got, declared := limits()
		require.Equal(t, set, got)
		require.Equal(t, &pawl.Limits{RunningPerKey: 1}, declared)
		err := s.SetLimits(t.Context(), "sync", &pawl.Limits{Fair: true})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "Fair")
		require.ErrorIs(t, s.SetLimits(t.Context(), strings.Repeat("x", 300), nil), pawl.ErrInvalid)
		require.NoError(t, s.SetLimits(t.Context(), "sync", nil))
		got, declared = limits()
		require.Equal(t, pawl.Limits{RunningPerKey: 1}, got)
		require.Nil(t, declared)
	}},
	{"keys are listed page by page, and read one by one", keyed, nil, func(t *testing.T, s *suiteTest) {
		want := pawl.KeyStats{Key: "a \xff", Running: 1, Ready: 1, Blocked: 1}
		page, err := s.Keys(t.Context(), KeyQuery{Queue: "sync", Limit: 1})
		require.NoError(t, err)
		require.Equal(t, KeyList{Keys: []pawl.KeyStats{want}, Next: want.Key}, page)
		page, err = s.Keys(t.Context(), KeyQuery{Queue: "sync", After: page.Next})
		require.NoError(t, err)
		require.Empty(t, page)
		one, err := s.Key(t.Context(), "sync", want.Key)
		require.NoError(t, err)
		want.Holders, want.Waiting = []pawl.ID{s.ids["first"]}, []pawl.ID{s.ids["second"]}
		require.Equal(t, want, one)
		_, err = s.Key(t.Context(), "sync", "b")
		require.ErrorIs(t, err, pawl.ErrNotFound)
		_, err = s.Keys(t.Context(), KeyQuery{Queue: strings.Repeat("x", 300)})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = s.Keys(t.Context(), KeyQuery{Queue: "sync", Limit: -1})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}},
}
