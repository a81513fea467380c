package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

func TestSuiteSummary(t *testing.T) { runSuite(t, summaryCases) }

// failures adds dead jobs of two kinds whose errors contain numbers, and one without an error.
func failures(t *testing.T, s *suiteTest, many int) {
	t.Helper()
	var jobs []*pawl.Envelope
	for n := range many {
		payload, err := EncodeJSON(fmt.Appendf(nil, `{"user":{"id":%d}}`, n%2))
		require.NoError(t, err)
		died := noon.Add(time.Duration(n) * time.Second)
		e := &pawl.Envelope{
			ID: pawl.ID{5, byte(n >> 8), byte(n)}, Kind: []string{"a", "b", "a"}[n%3], Queue: "failing", Payload: payload,
			State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonExhausted, At: died}, Attempts: 1, Failures: 1,
			History: []pawl.Failure{{Attempt: 1, At: died, Error: fmt.Sprintf("order %d is late by %v", n, time.Duration(n)*time.Millisecond)}},
		}
		if n == 0 {
			e.Failures, e.History, e.Death.Reason = 0, nil, pawl.ReasonCancelled
		}
		jobs = append(jobs, e)
	}
	require.NoError(t, s.Restore(t.Context(), jobs, nil))
}

var summaryCases = []suiteCase{
	{"dead jobs are grouped by what their errors, kinds, queues, reasons or payloads have in common", nil, nil, func(t *testing.T, s *suiteTest) {
		failures(t, s, 6)
		at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
		id := func(n int) pawl.ID { return pawl.ID{5, 0, byte(n)} }
		for by, want := range map[string][]Group{
			"":                  {{"order <n> is late by <duration>", 5, at(1), at(5), id(5)}, {"", 1, at(0), at(0), id(0)}},
			"error":             {{"order <n> is late by <duration>", 5, at(1), at(5), id(5)}, {"", 1, at(0), at(0), id(0)}},
			"kind":              {{"a", 4, at(0), at(5), id(5)}, {"b", 2, at(1), at(4), id(4)}},
			"queue":             {{"failing", 6, at(0), at(5), id(5)}},
			"reason":            {{"exhausted", 5, at(1), at(5), id(5)}, {"cancelled", 1, at(0), at(0), id(0)}},
			"payload.user.id":   {{"1", 3, at(1), at(5), id(5)}, {"0", 3, at(0), at(4), id(4)}},
			"payload.user.no":   {{"", 6, at(0), at(5), id(5)}},
			`payload."user".id`: {{"1", 3, at(1), at(5), id(5)}, {"0", 3, at(0), at(4), id(4)}},
		} {
			groups, damaged, err := Summarize(t.Context(), s, Filter{}, by)
			require.NoError(t, err)
			require.Zero(t, damaged)
			require.Len(t, groups, len(want), by)
			for i, g := range groups {
				require.True(t, g.First.Equal(want[i].First) && g.Last.Equal(want[i].Last), "%s: %v", by, g)
				g.First, g.Last = want[i].First, want[i].Last
				require.Equal(t, want[i], g, by)
			}
		}
		groups, _, err := Summarize(t.Context(), s, Filter{Filter: pawl.Filter{Kind: "a", State: pawl.Ready, DiedSince: at(1)}, Payload: []string{"user.id=1"}}, "kind")
		require.NoError(t, err)
		require.Len(t, groups, 1)
		require.EqualValues(t, 2, groups[0].Count, "filters hold, but for the state")
	}},
	{"a summary of many pages is that of all", nil, nil, func(t *testing.T, s *suiteTest) {
		const jobs = MaxLimit + 100
		failures(t, s, jobs)
		groups, _, err := Summarize(t.Context(), s, Filter{}, "error")
		require.NoError(t, err)
		require.Len(t, groups, 2)
		require.EqualValues(t, jobs-1, groups[0].Count)
	}},
	{"a grouping that is none is refused", nil, nil, func(t *testing.T, s *suiteTest) {
		for _, by := range []string{"size", "payload", "payload.", "payload.a=1", "payload.a~b"} {
			_, err := s.Summary(t.Context(), SummaryQuery{By: by})
			require.ErrorIs(t, err, pawl.ErrInvalid, by)
		}
	}},
}
