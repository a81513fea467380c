package bolt

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// all lists the jobs of the queue that match a filter.
func all(t *testing.T, q *Queue, f pawl.Filter) (jobs []*pawl.Envelope) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), f) {
		require.NoError(t, err)
		jobs = append(jobs, e)
	}
	return jobs
}

func TestJobsChoosesByStateQueueAndKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		// Two jobs for each state, queue and kind.
		states := []pawl.State{pawl.Dead, pawl.Leased, pawl.Delayed, pawl.Ready}
		queues, kinds := []string{"default", "default2"}, []string{"k", "kk"}
		for _, state := range states {
			for _, queue := range queues {
				for _, kind := range append(kinds, kinds...) {
					add(t, q, func(e *pawl.Envelope) {
						e.Queue, e.Kind, e.Headers = queue, kind, map[string]string{"state": string(state)}
						if e.Payload = make([]byte, 2*largePayload); state == pawl.Delayed {
							e.Delay = time.Hour
						}
					})
				}
			}
			if state == pawl.Delayed || state == pawl.Ready {
				continue
			}
			for _, l := range fetch(t, q, 99, queues...) {
				switch state {
				case pawl.Dead:
					require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errBoom)))
				}
			}
		}
		for _, state := range append(states, "") {
			for _, queue := range append(queues, "", "default3") {
				for _, kind := range append(kinds, "", "kkk") {
					f := pawl.Filter{State: state, Queue: queue, Kind: kind}
					want := 32
					for part, of := range map[string]int{string(state): 4, queue: 2, kind: 2} {
						if part != "" {
							want /= of
						}
					}
					if queue == "default3" || kind == "kkk" {
						want = 0
					}
					jobs := all(t, q, f)
					require.Len(t, jobs, want, "%+v", f)
					for _, e := range jobs {
						require.Equal(t, e.Headers["state"], string(e.State))
						require.True(t, state == "" || e.State == state)
						require.True(t, queue == "" || e.Queue == queue)
						require.True(t, kind == "" || e.Kind == kind)
						require.Equal(t, find(t, q, e.ID), e, "the same as Job tells, with payload and history")
					}
				}
			}
		}
	})
}

func TestJobsRefusesAnUnknownState(t *testing.T) {
	q := openTest(t, nil)
	seen := 0
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: "sleeping"}) {
		require.Nil(t, e)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		seen++
	}
	require.Equal(t, 1, seen)
}

func TestJobsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		for i, priority := range []int8{0, 5, -5, 0, 5} {
			add(t, q, func(e *pawl.Envelope) { e.Kind, e.Priority = string(rune('a'+i)), priority })
			pass(time.Second)
		}
		kinds := func(f pawl.Filter) (s string) {
			for _, e := range all(t, q, f) {
				s += e.Kind
			}
			return s
		}
		require.Equal(t, "abcde", kinds(pawl.Filter{}), "as they were made")
		require.Equal(t, "beadc", kinds(pawl.Filter{State: pawl.Ready}), "as they would be fetched")
		for _, l := range fetch(t, q, 9) {
			pass(time.Second)
			require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, nil)))
		}
		require.Equal(t, "beadc", kinds(pawl.Filter{State: pawl.Dead}), "as they died")
		require.Equal(t, "abcde", kinds(pawl.Filter{}))
	})
}

// Each limit of a page falls within these jobs: 64 jobs, 1 MiB, and 1024 rows, none of which
// matches the filter.
func TestJobsCrossesPages(t *testing.T) {
	q := openTest(t, nil)
	batch := newBatch(2*pageRows + 10)
	for i, e := range batch {
		switch {
		case i%200 == 0:
			e.Kind, e.Payload = "large", make([]byte, pageBytes/3)
		case i > 300 && i < 300+pageRows+50:
			e.Kind = "filler"
		default:
			e.Kind, e.Payload = "small", []byte(fmt.Sprint(i))
		}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	for _, state := range []pawl.State{"", pawl.Ready} {
		for _, kind := range []string{"", "large", "small", "filler"} {
			var want []pawl.ID
			for _, e := range batch {
				if kind == "" || e.Kind == kind {
					want = append(want, e.ID)
				}
			}
			require.Equal(t, want, idsOf(all(t, q, pawl.Filter{State: state, Kind: kind})), "each once, state %q, kind %q", state, kind)
		}
	}
	seen := 0
	for range q.Jobs(t.Context(), pawl.Filter{}) {
		if seen++; seen == pageJobs+1 {
			break
		}
	}
	require.Equal(t, pageJobs+1, seen, "the caller may stop")
	jobs := q.Jobs(t.Context(), pawl.Filter{Kind: "large"})
	for range 2 {
		n := 0
		for range jobs {
			n++
		}
		require.Equal(t, 11, n, "an iteration starts anew each time")
	}
}

func TestJobsEndsWithItsContext(t *testing.T) {
	q := openTest(t, nil)
	require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(3*pageJobs)...))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, failed := 0, 0
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			require.Nil(t, e)
			require.ErrorIs(t, err, context.Canceled)
			failed++
			continue
		}
		seen++
		cancel()
	}
	require.Equal(t, 1, failed, "as the last")
	require.Equal(t, 1, seen, "none after the end of the context")
}

// The body of the loop makes the file grow, which a read transaction on the same goroutine
// would block forever.
func TestJobsHoldsNoTransactionInTheLoop(t *testing.T) {
	q := openTest(t, nil)
	require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(pageJobs+10)...))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	n := 0
	for _, err := range q.Jobs(t.Context(), pawl.Filter{Kind: "k"}) {
		require.NoError(t, err)
		if n++; n%pageJobs == 1 {
			add(t, q, func(e *pawl.Envelope) { e.Kind, e.Payload = "large", make([]byte, pawl.DefaultMaxPayload) })
		}
		require.Zero(t, q.db.Stats().OpenTxN)
	}
	require.Equal(t, pageJobs+10, n)
	grown, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Greater(t, grown.Size, stats.Size+pawl.DefaultMaxPayload)
}

// The loop changes the jobs that it walks over. Jobs that do not change are seen exactly once.
func TestJobsSurvivesChanges(t *testing.T) {
	for _, state := range []pawl.State{"", pawl.Ready} {
		for _, c := range []struct {
			rule   string
			change func(t *testing.T, q *Queue, seen int, leases []*pawl.Lease)
		}{
			{"jobs go", func(t *testing.T, q *Queue, seen int, leases []*pawl.Lease) {
				if seen == 10 {
					atOnce(t, leases, func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) })
				}
			}},
			{"jobs come", func(t *testing.T, q *Queue, seen int, _ []*pawl.Lease) {
				if seen%10 == 0 && seen < 100 {
					fill(t, q, 1, "other")
				}
			}},
			{"jobs move", func(t *testing.T, q *Queue, seen int, leases []*pawl.Lease) {
				if seen == 10 {
					atOnce(t, leases, func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Nack(0, errBoom)) })
				}
			}},
		} {
			t.Run(fmt.Sprintf("%s, state %q", c.rule, state), func(t *testing.T) {
				q := openTest(t, nil)
				batch := newBatch(4 * pageJobs)
				var untouched []pawl.ID
				for i, e := range batch {
					if e.Queue = "touched"; i%2 == 0 {
						e.Queue = "untouched"
					}
				}
				require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
				for _, e := range batch {
					if e.Queue == "untouched" {
						untouched = append(untouched, e.ID)
					}
				}
				leases := fetch(t, q, len(batch), "touched")
				var seen []pawl.ID
				n := 0
				for e, err := range q.Jobs(t.Context(), pawl.Filter{State: state}) {
					require.NoError(t, err)
					if e.Queue == "untouched" {
						seen = append(seen, e.ID)
					}
					n++
					c.change(t, q, n, leases)
				}
				require.Equal(t, untouched, seen)
			})
		}
	}
}

func TestJobOfAnUnknownID(t *testing.T) {
	q := openTest(t, nil)
	_, err := q.Job(t.Context(), pawl.NewID(time.Now()))
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// The results of the loop and of a fetch belong to the caller: later pages and commits, which
// reuse the memory, do not change them.
func TestJobsAreCopies(t *testing.T) {
	q := openTest(t, nil)
	batch := newBatch(2 * pageJobs)
	for i, e := range batch {
		e.Payload = bytes.Repeat([]byte{byte(i)}, 100+10*i)
		e.Headers = map[string]string{"i": strings.Repeat("h", i)}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	jobs := all(t, q, pawl.Filter{})
	leases := fetch(t, q, len(batch))
	for _, l := range leases {
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	}
	for range 3 {
		require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(300)...))
	}
	for i, want := range batch {
		for _, got := range []*pawl.Envelope{jobs[i], leases[i].Envelope} {
			require.Equal(t, want.ID, got.ID)
			require.Equal(t, want.Payload, got.Payload)
			require.Equal(t, want.Headers, got.Headers)
		}
	}
}
