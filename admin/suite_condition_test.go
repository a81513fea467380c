package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

func TestSuiteConditions(t *testing.T) { runSuite(t, conditionCases) }

// heldJobs fills in dead jobs that a retry makes ready, and dead jobs that stay dead: one past
// its deadline, one whose unique key a ready job has, and all but the first of those that share
// a key.
func heldJobs(t *testing.T, s *suiteTest) (ids []pawl.ID, free int) {
	t.Helper()
	var jobs []*pawl.Envelope
	add := func(change func(*pawl.Envelope)) {
		e := &pawl.Envelope{ID: pawl.ID{8, byte(len(jobs))}, Kind: "k", Queue: "held", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPermanent, At: noon}}
		change(e)
		jobs = append(jobs, e)
	}
	add(func(*pawl.Envelope) {})
	add(func(e *pawl.Envelope) { e.Deadline = noon.Add(-time.Hour) })
	for range 3 {
		add(func(e *pawl.Envelope) { e.UniqueKey = "shared" })
	}
	add(func(e *pawl.Envelope) { e.UniqueKey = "taken" })
	for _, e := range jobs {
		ids = append(ids, e.ID)
	}
	add(func(e *pawl.Envelope) { e.UniqueKey, e.State, e.Death = "taken", pawl.Ready, nil })
	require.NoError(t, s.Restore(t.Context(), jobs, nil))
	return ids, 2
}

var conditionCases = []suiteCase{
	{"a filter is judged when the job is changed", everyState, nil, func(t *testing.T, s *suiteTest) {
		deadJob, err := s.Job(t.Context(), s.ids["dead"])
		require.NoError(t, err)
		for _, no := range []Filter{
			{Filter: pawl.Filter{Queue: "none"}},
			{Filter: pawl.Filter{State: pawl.Ready}},
			{Filter: pawl.Filter{DiedBefore: deadJob.Death.At}},
			{Error: "no error has this"},
			{Payload: []string{"no.field.has.this"}},
			{Until: deadJob.Created},
			{Before: deadJob.Death.At},
		} {
			for _, verb := range []Verb{Retry, Delete, Forward} {
				for _, dry := range []bool{true, false} {
					results, err := s.Do(t.Context(), Action{Verb: verb, If: &no, DryRun: dry}, deadJob.ID)
					require.NoError(t, err)
					require.ErrorIs(t, results[0], pawl.ErrNotEligible, "%s %+v", verb, no)
					require.ErrorIs(t, results[0], pawl.ErrConflict)
				}
			}
		}
		same, err := s.Job(t.Context(), deadJob.ID)
		require.NoError(t, err)
		require.Equal(t, deadJob, same)
		yes := Filter{
			Filter: pawl.Filter{State: pawl.Dead, Queue: deadJob.Queue, DiedSince: deadJob.Death.At, DiedBefore: deadJob.Death.At.Add(1)},
			Error:  deadJob.LastError(), Since: deadJob.Created, Before: deadJob.Death.At.Add(1),
		}
		results, err := s.Do(t.Context(), Action{Verb: Retry, If: &yes}, deadJob.ID)
		require.NoError(t, err)
		require.NoError(t, results[0])
	}},
	{"a filter that is none is refused", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, no := range []Filter{{Payload: []string{"=1"}}, {Filter: pawl.Filter{State: "asleep"}}} {
			_, err := s.Do(t.Context(), Action{Verb: Delete, If: &no}, s.ids["dead"])
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
		_, err := s.Job(t.Context(), s.ids["dead"])
		require.NoError(t, err)
	}},
	{"a dry run says what the action does then", everyState, nil, func(t *testing.T, s *suiteTest) {
		ids, free := heldJobs(t, s)
		for _, id := range s.ids {
			ids = append(ids, id)
		}
		ids = append(ids, pawl.ID{1})
		for _, a := range []Action{{Verb: Retry}, {Verb: RunNow}, {Verb: Cancel}, {Verb: Forward, Queue: "held"}, {Verb: Delete}} {
			before, err := s.Stats(t.Context())
			require.NoError(t, err)
			dry := a
			dry.DryRun = true
			said, err := s.Do(t.Context(), dry, ids...)
			require.NoError(t, err)
			after, err := s.Stats(t.Context())
			require.NoError(t, err)
			require.Equal(t, before.Queues, after.Queues, "a dry run changes nothing")
			if a.Verb == Retry {
				back := 0
				for _, err := range said[:6] {
					if err == nil {
						back++
					}
				}
				require.Equal(t, free, back)
			}
			done, err := s.Do(t.Context(), a, ids...)
			require.NoError(t, err)
			for i := range done {
				require.Equal(t, fmt.Sprint(done[i]), fmt.Sprint(said[i]), "%s of job %s", a.Verb, ids[i])
			}
		}
	}},
	{"a dry run takes as many jobs as a batch has", nil, nil, func(t *testing.T, s *suiteTest) {
		ids := make([]pawl.ID, MaxDryIDs)
		for i := range ids {
			ids[i] = pawl.ID{9, byte(i >> 8), byte(i)}
		}
		results, err := s.Do(t.Context(), Action{Verb: Retry, DryRun: true}, ids...)
		require.NoError(t, err)
		require.Len(t, results, len(ids))
		_, err = s.Do(t.Context(), Action{Verb: Retry, DryRun: true}, append(ids, pawl.ID{1})...)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}},
}
