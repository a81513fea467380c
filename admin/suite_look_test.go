package admin

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// Reads return what the queue has.
func TestSuiteLooks(t *testing.T) { runSuite(t, lookCases) }

var lookCases = []suiteCase{
	{"statistics are those of the queue", everyState, nil, func(t *testing.T, s *suiteTest) {
		got, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, s.path, got.Path)
		require.Equal(t, 1, got.Format)
		require.Positive(t, got.Size)
		require.Len(t, got.Queues, 3)
		counts := map[string]pawl.Counts{}
		for _, q := range got.Queues {
			counts[q.Name] = q.Counts
		}
		require.Equal(t, map[string]pawl.Counts{
			"email":   {Ready: 1, Delayed: 2, Leased: 1, Dead: 1, Completed: 1},
			"reports": {Dead: 1},
			"other":   {Ready: 1},
		}, counts)
	}},
	{"an empty queue has no jobs and no effects", nil, nil, func(t *testing.T, s *suiteTest) {
		got, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Empty(t, got.Queues)
		require.Empty(t, readPages(t, s, Query{}))
		effects, next, err := s.Effects(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, effects)
		require.Empty(t, next)
	}},
	{"pages to the end are all jobs in their order, whatever their size", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, limit := range []int{0, 1, 2, 3, 1000, 5000} {
			same(t, s.want, envelopes(t, readPages(t, s, Query{Detail: Whole, Limit: limit})))
		}
	}},
	{"pages of a state come in the order of that state", func(f *fixture) {
		everyState(f)
		f.many(3, pawl.Envelope{Kind: "many", Queue: "email", Priority: 9})
	}, nil, func(t *testing.T, s *suiteTest) {
		var ready []string
		for _, e := range envelopes(t, readPages(t, s, Query{Filter: Filter{Filter: pawl.Filter{State: pawl.Ready, Queue: "email"}}, Limit: 2})) {
			ready = append(ready, e.Kind)
		}
		require.Equal(t, []string{"many", "many", "many", "ready"}, ready)
	}},
	{"each state has its jobs", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, state := range pawl.States() {
			var want, got []string
			for kind, is := range suiteStates {
				if is == state {
					want = append(want, kind)
				}
			}
			for _, e := range envelopes(t, readPages(t, s, Query{Filter: Filter{Filter: pawl.Filter{State: state}}, Limit: 1})) {
				require.Equal(t, state, e.State)
				got = append(got, e.Kind)
			}
			require.ElementsMatch(t, want, got)
		}
	}},
	{"a job is found by the beginning or the end of its ID, and none by nonsense", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, e := range s.want {
			text := e.ID.String()
			for _, part := range []string{text, strings.ToUpper(text), strings.ReplaceAll(text, "-", ""), text[len(text)-12:]} {
				ids, next, err := s.FindIDs(t.Context(), part, "")
				require.NoError(t, err)
				require.Empty(t, next)
				require.Contains(t, ids, e.ID, part)
				for _, id := range ids {
					require.True(t, strings.HasPrefix(id.String(), strings.ToLower(part)) || strings.HasSuffix(id.String(), strings.ToLower(part)) || id == e.ID, part)
				}
			}
		}
		ids, _, err := s.FindIDs(t.Context(), "ffffffffffff", "")
		require.NoError(t, err)
		require.Empty(t, ids)
		for _, part := range []string{"", "123", "xyzw", "----", "12 34", "\xff\xff\xff\xff"} {
			_, _, err := s.FindIDs(t.Context(), part, "")
			require.ErrorIs(t, err, pawl.ErrInvalid, part)
		}
	}},
	{"a filter chooses what it matches, field by field", everyState, nil, func(t *testing.T, s *suiteTest) {
		for name, f := range map[string]Filter{
			"state":       {Filter: pawl.Filter{State: pawl.Dead}},
			"queue":       {Filter: pawl.Filter{Queue: "email"}},
			"kind":        {Filter: pawl.Filter{Kind: "dead twice"}},
			"reason":      {Filter: pawl.Filter{Reason: pawl.ReasonExhausted}},
			"died before": {Filter: pawl.Filter{State: pawl.Dead, DiedBefore: noon.Add(time.Second)}},
			"error":       {Error: "CONNECTION"},
			"payload":     {Payload: []string{"n=1", "kind~TWICE"}},
			"no payload":  {Payload: []string{"n!=1"}},
			"since":       {Since: noon.Add(time.Minute)},
			"until":       {Until: noon.Add(time.Minute)},
			"before":      {Before: noon.Add(2 * time.Minute)},
			"all":         {Filter: pawl.Filter{State: pawl.Dead, Queue: "reports"}, Error: "timeout", Payload: []string{"kind"}, Since: noon, Until: noon.Add(time.Hour), Before: noon.Add(time.Hour)},
			"queues":      {Queues: []string{"email", "reports"}, States: []pawl.State{pawl.Dead, pawl.Ready}},
			"kinds":       {Kinds: []string{"dead twice", "nothing"}},
			"states":      {States: []pawl.State{pawl.Leased, pawl.Delayed}},
			"reasons":     {Reasons: []pawl.Reason{pawl.ReasonExhausted, pawl.ReasonCancelled}},
			"odd error":   {Error: "\x1b[31m\xff"},
			"none":        {Filter: pawl.Filter{Queue: "nobody's"}},
		} {
			var want []*pawl.Envelope
			for _, e := range s.want {
				if f.Matches(e) {
					want = append(want, e)
				}
			}
			if name != "none" {
				require.NotEmpty(t, want, name)
				require.Less(t, len(want), len(s.want), name)
			}
			for _, limit := range []int{1, 50} {
				got := envelopes(t, readPages(t, s, Query{Filter: f, Detail: Whole, Limit: limit}))
				byID := func(a, b *pawl.Envelope) int { return slices.Compare(a.ID[:], b.ID[:]) }
				slices.SortFunc(got, byID)
				same(t, want, got)
			}
		}
	}},
	{"a list has as much of each job as was asked for", everyState, nil, func(t *testing.T, s *suiteTest) {
		for i, e := range envelopes(t, readPages(t, s, Query{})) {
			want := *s.want[i]
			want.Payload, want.History = nil, want.History[max(0, len(want.History)-1):]
			same(t, []*pawl.Envelope{&want}, []*pawl.Envelope{e})
		}
		for i, e := range envelopes(t, readPages(t, s, Query{Detail: IDs})) {
			w := s.want[i]
			require.Equal(t, w.ID, e.ID)
			require.Equal(t, w.Queue, e.Queue)
			require.Equal(t, w.Kind, e.Kind)
			require.Equal(t, w.State, e.State)
			require.Empty(t, e.Payload)
			require.Empty(t, e.History)
			require.Empty(t, e.Headers)
		}
	}},
	{"a page has 50 jobs unless told otherwise, and never more than 1 000", func(f *fixture) { f.many(1100, pawl.Envelope{Kind: "many"}) }, nil, func(t *testing.T, s *suiteTest) {
		for limit, want := range map[int]int{0: DefaultLimit, 7: 7, 1000: 1000, math.MaxInt32: MaxLimit} {
			page, err := s.List(t.Context(), Query{Limit: limit})
			require.NoError(t, err)
			require.Len(t, page.Jobs, want)
			require.NotEmpty(t, page.Next)
		}
		require.Len(t, readPages(t, s, Query{Detail: IDs, Limit: 300}), 1100)
		n := 0
		for e, err := range Jobs(t.Context(), s, Query{}) {
			require.NoError(t, err)
			require.Equal(t, s.want[n].ID, e.ID)
			n++
		}
		require.Equal(t, 1100, n)
	}},
	{"a filter that few jobs match comes to its end", func(f *fixture) {
		f.many(3000, pawl.Envelope{Kind: "many"})
		f.add(pawl.Envelope{Kind: "needle"})
	}, nil, func(t *testing.T, s *suiteTest) {
		for _, f := range []Filter{{Payload: []string{"kind=needle"}}, {Filter: pawl.Filter{Kind: "needle"}}} {
			got := readPages(t, s, Query{Filter: f, Limit: 1})
			require.Len(t, got, 1)
			require.Equal(t, s.ids["needle"], got[0].Job.ID)
		}
	}},
	{"a page carries no more than some MiB of payloads, and goes on behind them", func(f *fixture) {
		big := make([]byte, 1<<20-5)
		for range 9 { // one more than a page can carry
			f.add(pawl.Envelope{Kind: "big", Payload: packOf(f.t, big)})
		}
	}, nil, func(t *testing.T, s *suiteTest) {
		queries := []Query{{Detail: Whole}, {Detail: Whole, Filter: Filter{Payload: []string{"."}}}}
		for _, q := range queries[:race.Fewer(len(queries))] { // one goroutine decodes all
			page, err := s.List(t.Context(), q)
			require.NoError(t, err)
			require.Less(t, len(page.Jobs), 9)
			require.NotEmpty(t, page.Next)
			q.After = page.Next
			all := envelopes(t, append(page.Jobs, readPages(t, s, q)...))
			require.Len(t, all, 9)
			for i, e := range all {
				require.Equal(t, s.want[i].ID, e.ID)
				require.Equal(t, s.want[i].Payload, e.Payload)
			}
		}
	}},
	{"what is no query is refused", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, q := range []Query{
			{Limit: -1},
			{Filter: Filter{Filter: pawl.Filter{State: "lost"}}},
			{Filter: Filter{Payload: []string{"=1"}}},
			{After: "no such place"},
			{After: strings.Repeat("A", 10_000)},
			{After: "\x00\xff"},
		} {
			_, err := s.List(t.Context(), q)
			require.ErrorIs(t, err, pawl.ErrInvalid, "%+v", q)
		}
		_, _, err := s.Effects(t.Context(), "no such place")
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}},
	{"one job is read with all that it has", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, want := range s.want {
			got, err := s.Job(t.Context(), want.ID)
			require.NoError(t, err)
			same(t, []*pawl.Envelope{want}, []*pawl.Envelope{got})
			require.Equal(t, suiteStates[want.Kind], got.State)
		}
		_, err := s.Job(t.Context(), pawl.ID{1})
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
	{"a damaged job is in the list with its error, and the others are there", everyState, spoil("dead"), func(t *testing.T, s *suiteTest) {
		for _, f := range []Filter{{}, {Filter: pawl.Filter{State: pawl.Dead}}, {Error: "timeout"}} {
			damaged := 0
			for _, one := range readPages(t, s, Query{Filter: f, Limit: 1}) {
				if one.Err == nil {
					require.NotEqual(t, s.ids["dead"], one.Job.ID)
					continue
				}
				damaged++
				require.ErrorIs(t, one.Err, pawl.ErrCorrupt)
				require.Equal(t, s.ids["dead"], one.Job.ID)
			}
			require.Equal(t, 1, damaged)
		}
		require.Len(t, readPages(t, s, Query{Limit: 2}), len(suiteStates))
		_, err := s.Job(t.Context(), s.ids["dead"])
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	}},
	{"names and texts of any bytes come through", func(f *fixture) {
		for _, name := range []string{"\x1b[31mred", "\xff\xfe", "a/b?c=d&e#f%00", "ü\u202e\n\t\"\\", "..", " ", "<script>"} {
			f.ids[name] = f.many(1, pawl.Envelope{Kind: name, Queue: name, Headers: map[string]string{name: name}})[0]
		}
	}, nil, func(t *testing.T, s *suiteTest) {
		for name, id := range s.ids {
			got, err := s.Job(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, map[string]string{name: name}, got.Headers)
			for _, f := range []pawl.Filter{{Kind: name}, {Queue: name}} {
				all := envelopes(t, readPages(t, s, Query{Filter: Filter{Filter: f}}))
				require.Len(t, all, 1, "%q", name)
				require.Equal(t, name, all[0].Kind)
			}
		}
		for name := range s.ids {
			require.NoError(t, s.Pause(t.Context(), name), "%q", name)
		}
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Len(t, stats.Queues, len(s.ids))
		for _, q := range stats.Queues {
			require.Contains(t, s.ids, q.Name)
			require.True(t, q.Paused)
		}
	}},
	{"a context that has ended ends every call", everyState, nil, func(t *testing.T, s *suiteTest) {
		_, err := s.Stats(t.Context()) // so that nothing fails for another reason
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		id := s.ids["dead"]
		for name, call := range map[string]func() error{
			"Stats":   func() error { _, err := s.Stats(ctx); return err },
			"List":    func() error { _, err := s.List(ctx, Query{}); return err },
			"Summary": func() error { _, err := s.Summary(ctx, SummaryQuery{}); return err },
			"Job":     func() error { _, err := s.Job(ctx, id); return err },
			"Do":      func() error { _, err := s.Do(ctx, Action{Verb: Retry}, id); return err },
			"Enqueue": func() error { return withid.Enqueue(ctx, s, &pawl.Envelope{Kind: "x"}) },
			"Pause":   func() error { return s.Pause(ctx, "email") },
			"Resume":  func() error { return s.Resume(ctx, "email") },
			"Reap":    func() error { _, err := s.Reap(ctx); return err },
			"Effects": func() error { _, _, err := s.Effects(ctx, ""); return err },
			"Restore": func() error { return s.Restore(ctx, []*pawl.Envelope{{Kind: "x", State: pawl.Ready}}, nil) },
			"Check":   func() error { return s.Check(ctx) },
			"Backup":  func() error { return s.Backup(ctx, new(strings.Builder)) },
		} {
			require.ErrorIs(t, call(), context.Canceled, name)
		}
	}},
}
