package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/worker"
)

// fate is how a job ends in the stress test.
type fate struct {
	outcomes []func() error // of its attempts
	died     pawl.Reason    // "" when it is acked in the end
	attempts int            // of a dead one
}

var (
	works  = func() error { return nil }
	breaks = func() error { return errBroken }
	fates  = []fate{
		{outcomes: []func() error{works}},
		{outcomes: []func() error{breaks, works}},
		{outcomes: []func() error{func() error { panic("boom") }, works}},
		{outcomes: []func() error{func() error { runtime.Goexit(); return nil }, works}},
		{outcomes: []func() error{func() error { return pawl.Snooze(0) }, breaks, works}},
		{outcomes: []func() error{func() error { return pawl.Snooze(time.Millisecond) }, works}},
		{outcomes: []func() error{func() error { return pawl.RetryAfter(2*time.Millisecond, errBroken) }, works}},
		{outcomes: []func() error{breaks, breaks}, died: pawl.ReasonExhausted, attempts: 2},
		{outcomes: []func() error{func() error { return pawl.Permanent(errBroken) }}, died: pawl.ReasonPermanent, attempts: 1},
	}
)

// fateOf spreads the fates: three jobs of four just work.
func fateOf(job int) fate {
	if job%4 != 0 {
		return fates[0]
	}
	return fates[job/4%len(fates)]
}

// trace is what the stress test saw of one job.
type trace struct{ active, runs, acks atomic.Int32 }

// ackCounter counts acks that went through.
type ackCounter struct {
	pawl.Queue
	traces []trace
	kind   *pawl.Kind[int]
}

func (c *ackCounter) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	err := c.Queue.Settle(ctx, settlements...)
	var failed pawl.SettleError
	if part := new(pawl.SettleError); errors.As(err, &part) {
		failed = *part
	} else if err != nil {
		return err
	}
	for _, s := range settlements {
		if s.Outcome != pawl.OutcomeAck || failed.Failed[s.Lease] != nil {
			continue
		}
		if job, err := c.kind.Job(s.Lease.Envelope); err == nil {
			c.traces[job.Args].acks.Add(1)
		}
	}
	return err
}

// No wake-up is lost: as long as there is work nothing waits for a clock, so the
// work takes no virtual time.
func TestWorkTakesNoTime(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		const jobs, producers = 200, 4
		var handled atomic.Int32
		w := newWorker(q, worker.Options{Concurrency: 3, Policy: pawl.None()})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if job.Last {
				handled.Add(1)
				return nil
			}
			return errBroken
		})
		stop := start(t, w)
		began := time.Now()
		var producing sync.WaitGroup
		for range producers {
			producing.Go(func() {
				for range jobs / producers {
					_, err := task.Enqueue(t.Context(), q, "a", pawl.MaxRetries(rand.N(2)))
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		producing.Wait()
		synctest.Wait()
		require.EqualValues(t, jobs, handled.Load())
		require.Zero(t, time.Since(began))
		require.Zero(t, counts(t, q))
		require.NoError(t, stop())
	})
}

// Thousands of jobs with all sorts of ends, several producers, workers that come
// and go: no job is lost, none runs once too often or beside itself, each is acked
// once or dead for its reason, and no worker goes beyond its slots.
func TestStress(t *testing.T) {
	const jobs, producers, slots = 10_000, 4, 16
	q, _ := open(t)
	kind := pawl.Define[int]("stress", pawl.MaxRetries(1), pawl.Backoff(pawl.None()))
	traces := make([]trace, jobs)
	counted := &ackCounter{Queue: q, traces: traces, kind: kind}

	newWorker := func() *worker.Worker {
		var active atomic.Int32
		w := newWorker(counted, worker.Options{Concurrency: slots})
		worker.Handle(w, kind, func(_ context.Context, job *pawl.Job[int]) error {
			defer active.Add(-1)
			if n := active.Add(1); n > slots {
				t.Errorf("%d handlers run in %d slots", n, slots)
			}
			tr, outcomes := &traces[job.Args], fateOf(job.Args).outcomes
			defer tr.active.Add(-1)
			if tr.active.Add(1) != 1 {
				t.Errorf("job %d runs beside itself", job.Args)
			}
			run := int(tr.runs.Add(1))
			if run > len(outcomes) {
				t.Errorf("job %d runs for the %dth time", job.Args, run)
				return nil
			}
			return outcomes[run-1]()
		})
		return w
	}

	var producing, working sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			for next := p; next < jobs; {
				var batch []*pawl.Envelope
				for range 1 + rand.N(100) {
					if next < jobs {
						e, err := kind.Envelope(next, pawl.Priority(int8(next%3)))
						if err != nil {
							panic(err)
						}
						batch = append(batch, e)
						next += producers
					}
				}
				if err := withid.Enqueue(t.Context(), q, batch...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	produced := make(chan struct{})
	for range 2 {
		working.Go(func() {
			for going := true; going; {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(50*time.Millisecond))
				if err := newWorker().Run(ctx); err != nil {
					t.Error(err)
				}
				cancel()
				select {
				case <-produced:
					going = false
				default:
				}
			}
		})
	}
	producing.Wait()
	close(produced)
	working.Wait()
	require.NoError(t, newWorker().Drain(t.Context(), pawl.WaitFinished))

	dead := 0
	for i := range traces {
		f := fateOf(i)
		require.EqualValues(t, len(f.outcomes), traces[i].runs.Load(), "attempts of job %d", i)
		if f.died == "" {
			require.EqualValues(t, 1, traces[i].acks.Load(), "acks of job %d", i)
			continue
		}
		dead++
		require.Zero(t, traces[i].acks.Load(), "acks of job %d", i)
	}
	require.Equal(t, pawl.Counts{Dead: dead}, counts(t, q))
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Dead}) {
		require.NoError(t, err)
		job, err := kind.Job(e)
		require.NoError(t, err)
		f := fateOf(job.Args)
		require.Equal(t, fmt.Sprint(f.died, f.attempts), fmt.Sprint(e.Death.Reason, e.Attempts), "job %d", job.Args)
	}
}
