package admin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// Changes have the effect of the queue's own verbs.
func TestSuiteChanges(t *testing.T) { runSuite(t, changeCases) }

// applies lists the states to which a verb applies, and the resulting state.
var applies = map[Verb]map[pawl.State]pawl.State{
	Retry:   {pawl.Dead: pawl.Ready},
	Cancel:  {pawl.Ready: pawl.Dead, pawl.Delayed: pawl.Dead, pawl.Leased: pawl.Leased},
	Delete:  {pawl.Dead: "", pawl.Completed: ""},
	RunNow:  {pawl.Delayed: pawl.Ready},
	Forward: {pawl.Dead: pawl.Ready},
}

// verbCase applies one verb to a job of each state, and to a missing job.
func verbCase(verb Verb) suiteCase {
	return suiteCase{string(verb) + " does what it says to the states it applies to, and nothing to others", everyState, nil, func(t *testing.T, s *suiteTest) {
		ids, kinds := []pawl.ID{{1}}, []string{""}
		for kind, id := range s.ids {
			ids, kinds = append(ids, id), append(kinds, kind)
		}
		results, err := s.Do(t.Context(), Action{Verb: verb}, ids...)
		require.NoError(t, err)
		require.Len(t, results, len(ids))
		require.ErrorIs(t, results[0], pawl.ErrNotFound)
		for i, kind := range kinds[1:] {
			before, result := suiteStates[kind], results[i+1]
			if !s.live && before == pawl.Leased {
				before = pawl.Ready // its process is gone
			}
			after, ok := applies[verb][before]
			job, err := s.Job(t.Context(), ids[i+1])
			if !ok {
				require.ErrorIs(t, result, pawl.ErrConflict, "%s %s", verb, kind)
				require.NoError(t, err)
				require.Equal(t, before, job.State, "%s %s", verb, kind)
				continue
			}
			if after == pawl.Leased {
				require.ErrorIs(t, result, ErrCancelRequested, "%s %s", verb, kind)
			} else {
				require.NoError(t, result, "%s %s", verb, kind)
			}
			if after == "" {
				require.ErrorIs(t, err, pawl.ErrNotFound)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, after, job.State, "%s %s", verb, kind)
			if after == pawl.Leased {
				require.True(t, job.Cancelled)
			}
		}
	}}
}

var changeCases = []suiteCase{
	verbCase(Retry), verbCase(Cancel), verbCase(Delete), verbCase(RunNow), verbCase(Forward),

	{"a retry begins to count anew, unless it goes on", everyState, nil, func(t *testing.T, s *suiteTest) {
		for kind, a := range map[string]Action{"dead": {Verb: Retry}, "dead twice": {Verb: Retry, KeepAttempts: true}} {
			results, err := s.Do(t.Context(), a, s.ids[kind])
			require.NoError(t, err)
			require.Equal(t, []error{nil}, results)
		}
		for kind, want := range map[string]int{"dead": 0, "dead twice": 2} {
			job, err := s.Job(t.Context(), s.ids[kind])
			require.NoError(t, err)
			require.Equal(t, want, job.Attempts, kind)
			require.NotEmpty(t, job.History)
		}
	}},
	{"a dead job is forwarded to the queue named, or to the usual one, and says how it died", everyState, nil, func(t *testing.T, s *suiteTest) {
		for kind, to := range map[string]string{"dead": "", "dead twice": "looked at"} {
			results, err := s.Do(t.Context(), Action{Verb: Forward, Queue: to}, s.ids[kind])
			require.NoError(t, err)
			require.Equal(t, []error{nil}, results)
			if to == "" {
				to = dlq.FailedJobs
			}
			job, err := s.Job(t.Context(), s.ids[kind])
			require.NoError(t, err)
			require.Equal(t, to, job.Queue)
			deadJob, ok := dlq.SourceOf(job)
			require.True(t, ok)
			require.NotEmpty(t, deadJob.History)
		}
		same := Action{Verb: Forward, Queue: "reports"}
		require.NoError(t, s.Restore(t.Context(), []*pawl.Envelope{{ID: pawl.ID{7}, Kind: "x", Queue: "reports", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPoison, At: noon}}}, nil))
		results, err := s.Do(t.Context(), same, pawl.ID{7})
		require.NoError(t, err)
		require.ErrorIs(t, results[0], pawl.ErrConflict)
	}},
	{"results stand in the order of the IDs, and one that is named twice is done once", everyState, nil, func(t *testing.T, s *suiteTest) {
		results, err := s.Do(t.Context(), Action{Verb: Delete}, s.ids["dead"], pawl.ID{1}, s.ids["ready"], s.ids["dead"], s.ids["completed"])
		require.NoError(t, err)
		require.Len(t, results, 5)
		require.NoError(t, results[0])
		require.ErrorIs(t, results[1], pawl.ErrNotFound)
		require.ErrorIs(t, results[2], pawl.ErrConflict)
		require.NoError(t, results[3])
		require.NoError(t, results[4])
	}},
	{"a thousand jobs are done in one call, and no more", nil, nil, func(t *testing.T, s *suiteTest) {
		var jobs []*pawl.Envelope
		for i := range MaxIDs {
			jobs = append(jobs, &pawl.Envelope{ID: pawl.ID{1, byte(i >> 8), byte(i)}, Kind: "many", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPoison, At: noon}})
		}
		require.NoError(t, s.Restore(t.Context(), jobs, nil))
		var ids []pawl.ID
		for _, e := range jobs {
			ids = append(ids, e.ID)
		}
		_, err := s.Do(t.Context(), Action{Verb: Retry}, append(ids, pawl.ID{2})...)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		results, err := s.Do(t.Context(), Action{Verb: Retry}, ids...)
		require.NoError(t, err)
		require.NoError(t, errors.Join(results...))
		require.Len(t, results, MaxIDs)
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counts{Ready: MaxIDs}, stats.Queues[0].Counts)
		unknown := make([]pawl.ID, MaxIDs)
		for i := range unknown {
			unknown[i] = pawl.ID{9, byte(i >> 8), byte(i)}
		}
		results, err = s.Do(t.Context(), Action{Verb: Delete}, unknown...)
		require.NoError(t, err)
		for _, result := range results {
			require.ErrorIs(t, result, pawl.ErrNotFound)
		}
	}},
	{"what is no action is refused, and nothing is done", everyState, nil, func(t *testing.T, s *suiteTest) {
		for _, a := range []Action{{}, {Verb: "burn"}, {Verb: "RETRY"}, {Verb: Forward, Queue: strings.Repeat("q", 256)}, {Verb: Forward, Queue: "a\x00b"}} {
			_, err := s.Do(t.Context(), a, s.ids["dead"])
			require.ErrorIs(t, err, pawl.ErrInvalid, "%+v", a)
		}
		results, err := s.Do(t.Context(), Action{Verb: Retry})
		require.NoError(t, err)
		require.Empty(t, results)
		job, err := s.Job(t.Context(), s.ids["dead"])
		require.NoError(t, err)
		require.Equal(t, pawl.Dead, job.State)
	}},
	{"a damaged dead job cannot be retried, and can be deleted", everyState, spoil("dead"), func(t *testing.T, s *suiteTest) {
		for verb, want := range map[Verb]error{Retry: pawl.ErrCorrupt, Forward: pawl.ErrCorrupt, Cancel: pawl.ErrCorrupt, RunNow: pawl.ErrCorrupt} {
			results, err := s.Do(t.Context(), Action{Verb: verb}, s.ids["dead"])
			require.NoError(t, err)
			require.ErrorIs(t, results[0], want, string(verb))
		}
		results, err := s.Do(t.Context(), Action{Verb: Delete}, s.ids["dead"])
		require.NoError(t, err)
		require.NoError(t, results[0])
		require.Len(t, readPages(t, s, Query{}), len(suiteStates)-1)
	}},
	{"an enqueue stores all, and returns what became of them", everyState, nil, func(t *testing.T, s *suiteTest) {
		first := &pawl.Envelope{Kind: "new", Queue: "fresh", Payload: packOf(t, "x"), Delay: time.Minute, Headers: map[string]string{"a": "b"}}
		second := &pawl.Envelope{ID: pawl.ID{5}, Kind: "new", Created: noon.Add(-time.Hour), Origin: "elsewhere"}
		taken := &pawl.Envelope{Kind: "delayed", Queue: "email", UniqueKey: "u"}
		given := []pawl.Envelope{*first, *second, *taken}
		done, err := s.Enqueue(t.Context(), first, second, taken)
		require.NoError(t, err)
		require.Equal(t, given, []pawl.Envelope{*first, *second, *taken}, "the arguments are as they were")
		require.False(t, done[0].ID.IsZero())
		require.Equal(t, []pawl.Enqueued{{ID: done[0].ID}, {ID: pawl.ID{5}}, {ID: s.ids["delayed"], Existing: true}}, done)
		seq := uint64(0)
		for i, e := range []*pawl.Envelope{first, second} {
			got, err := s.Job(t.Context(), done[i].ID)
			require.NoError(t, err)
			require.Equal(t, map[bool]pawl.State{true: pawl.Delayed, false: pawl.Ready}[e == first], got.State)
			require.Greater(t, got.Seq, seq)
			seq = got.Seq
			want := *e
			want.ID, want.Seq = got.ID, got.Seq
			driver.Accept(&want, s.now())
			require.Equal(t, driver.AppendRecord(nil, &want, 0), driver.AppendRecord(nil, got, 0), "what was given is what was stored")
		}
		done, err = s.Enqueue(t.Context())
		require.NoError(t, err, "no job is no error")
		require.Empty(t, done)
	}},
	{"an enqueue that is refused stores nothing, and changes no envelope", everyState, nil, func(t *testing.T, s *suiteTest) {
		for want, bad := range map[error]*pawl.Envelope{
			pawl.ErrInvalid:  {Queue: "email"},
			pawl.ErrConflict: {ID: s.ids["dead"], Kind: "x"},
		} {
			good := &pawl.Envelope{Kind: "good"}
			require.ErrorIs(t, withid.Enqueue(t.Context(), s, good, bad), want)
			require.Equal(t, &pawl.Envelope{Kind: "good"}, good)
		}
		require.ErrorIs(t, withid.Enqueue(t.Context(), s, &pawl.Envelope{Kind: "delayed", Queue: "email", UniqueKey: "u", OnConflict: pawl.Reject}), pawl.ErrConflict)
		require.Len(t, readPages(t, s, Query{}), len(suiteStates))
	}},
	{"a unique job takes the place of the one that has the key, where it is to", everyState, nil, func(t *testing.T, s *suiteTest) {
		e := &pawl.Envelope{Kind: "delayed", Queue: "email", UniqueKey: "u", OnConflict: pawl.Replace, Payload: packOf(t, "new")}
		require.NoError(t, withid.Enqueue(t.Context(), s, e))
		require.Equal(t, s.ids["delayed"], e.ID)
		got, err := s.Job(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, e.Payload, got.Payload)
		require.Equal(t, pawl.Ready, got.State)
	}},
	{"a paused queue stays so until it is resumed", everyState, nil, func(t *testing.T, s *suiteTest) {
		paused := func() (names []string) {
			stats, err := s.Stats(t.Context())
			require.NoError(t, err)
			for _, q := range stats.Queues {
				if q.Paused {
					names = append(names, q.Name)
				}
			}
			return names
		}
		require.NoError(t, s.Pause(t.Context(), "email"))
		require.NoError(t, s.Pause(t.Context(), "new queue"))
		require.ElementsMatch(t, []string{"email", "new queue"}, paused())
		require.NoError(t, s.Resume(t.Context(), "email"))
		require.NoError(t, s.Resume(t.Context(), "other"))
		require.Equal(t, []string{"new queue"}, paused())
		for _, bad := range []string{"", "a\x00b", strings.Repeat("q", 256)} {
			require.ErrorIs(t, s.Pause(t.Context(), bad), pawl.ErrInvalid)
			require.ErrorIs(t, s.Resume(t.Context(), bad), pawl.ErrInvalid)
		}
	}},
	{"reap takes back the leases whose holders are gone", everyState, nil, func(t *testing.T, s *suiteTest) {
		n, err := s.Reap(t.Context())
		require.NoError(t, err)
		job, jobErr := s.Job(t.Context(), s.ids["leased"])
		require.NoError(t, jobErr)
		if s.live {
			require.Zero(t, n)
			require.Equal(t, pawl.Leased, job.State)
		} else {
			require.Equal(t, 1, n)
			require.Equal(t, pawl.Ready, job.State)
			require.Equal(t, 1, job.Crashes)
		}
		n, err = s.Reap(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	}},
	{"several changes at a time are each done", func(f *fixture) { f.many(50, pawl.Envelope{Kind: "many", Delay: time.Hour}) }, nil, func(t *testing.T, s *suiteTest) {
		errs := make(chan error, 20)
		for part := range 10 {
			go func() {
				var ids []pawl.ID
				for _, e := range s.want[part*5 : part*5+5] {
					ids = append(ids, e.ID)
				}
				results, err := s.Do(context.Background(), Action{Verb: RunNow}, ids...)
				errs <- errors.Join(append(results, err)...)
			}()
			go func() {
				_, err := s.List(context.Background(), Query{Limit: 1000})
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counts{Ready: 50}, stats.Queues[0].Counts)
	}},
}
