package recurring

import (
	"context"
	"errors"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// leases fetches all jobs.
func (k *kit) leases() []*pawl.Lease {
	k.Helper()
	leases, err := k.q.Fetch(k.Context(), pawl.Request{Max: 100, Wait: pawl.WaitNot})
	if !errors.Is(err, pawl.ErrEmpty) {
		require.NoError(k, err)
	}
	return leases
}

// Rule: buffered ticks fire one after another, each when the job before it has ended. A retry is not
// its end.
func buffers(k *kit) {
	k.sync(schedule.Job("a", "@hourly", report, "x", schedule.Overlap(schedule.Buffer), schedule.BufferLimit(2)))
	k.pass(4*time.Hour + time.Minute)
	require.Len(k, k.jobs(), 1)
	require.Equal(k, []string{"fired 01 01:00:00", "buffered 01 02:00:00", "buffered 01 03:00:00", "skipped 01 04:00:00"}, k.history("a"))
	for _, want := range []string{"a 01 02:00:00", "a 01 03:00:00"} {
		l := k.leases()[0]
		require.NoError(k, k.q.Settle(k.Context(), l.Nack(time.Second, errors.New("boom"))))
		k.pass(10 * time.Second)
		require.Len(k, k.jobs(), 1)
		l = k.leases()[0]
		require.NoError(k, k.q.Settle(k.Context(), l.Ack()))
		k.pass(10 * time.Second)
		require.Equal(k, []string{want}, k.jobs())
	}
	require.Empty(k, k.info("a").Buffered)
}

// Rule: with CancelOther, the running job is asked to end, and the latest tick fires when it has.
func cancels(k *kit) {
	k.sync(schedule.Job("a", "@hourly", report, "x", schedule.Overlap(schedule.CancelOther)))
	k.pass(61 * time.Minute)
	l := k.leases()[0]
	stop := make(chan struct{})
	go func() { // a handler that takes its time to end
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Second):
				_, _ = k.q.Extend(context.Background(), l)
			}
		}
	}()
	k.pass(2 * time.Hour)
	close(stop)
	e, err := k.q.Job(k.Context(), l.ID)
	require.NoError(k, err)
	require.True(k, e.Cancelled)
	require.NoError(k, k.q.Settle(k.Context(), l.Nack(0, errors.New("cancelled"))))
	k.pass(10 * time.Second)
	require.Contains(k, k.jobs(), "a 01 03:00:00")
	require.Equal(k, []string{"fired 01 01:00:00", "skipped 01 02:00:00", "buffered 01 03:00:00"}, k.history("a"))
}

// Rule: if the overlap policy changes while a tick waits, the new one holds for the job that the tick waits for.
func cancelsLater(k *kit) {
	e := workflow.Open(k.q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()})
	f := workflow.Define("double", func(_ *workflow.Run, n int) (int, error) { return 2 * n, nil }, workflow.Retain(24*time.Hour))
	k.sync(schedule.Job("job", "@hourly", report, "x", schedule.Overlap(schedule.Buffer)),
		schedule.Flow("run", "@hourly", f, 21, schedule.Overlap(schedule.Buffer)))
	k.pass(2*time.Hour + time.Minute)
	set := func(name string, p schedule.OverlapPolicy) {
		terms := k.info(name).Terms
		terms.Overlap, terms.Buffer = p, 0
		require.NoError(k, k.s.Set(k.Context(), name, terms))
		k.pass(10 * time.Second)
	}
	set("job", schedule.CancelOther)
	require.Empty(k, k.info("job").Buffered)
	set("run", schedule.CancelOther)
	set("run", schedule.TerminateOther)
	defer k.work(e, f)()
	h, err := f.Handle(k.Context(), e, "run/2000-01-01T01:00:00Z")
	require.NoError(k, err)
	_, err = h.Result(k.Context())
	require.ErrorIs(k, err, workflow.ErrTerminated)
}

// Rule: a job that the store refuses is a failed tick, and hurts no other schedule.
func fails(k *kit) {
	large := schedule.Envelope("large", "@hourly", &pawl.Envelope{Kind: "report", Payload: make([]byte, pawl.DefaultMaxPayload+1)})
	k.sync(hourly("a"), large, hourly("z"))
	k.pass(61 * time.Minute)
	require.Equal(k, []string{"failed 01 01:00:00"}, k.history("large"))
	require.ElementsMatch(k, []string{"a 01 01:00:00", "z 01 01:00:00"}, k.jobs())
	_, err := k.s.Trigger(k.Context(), "large")
	require.ErrorIs(k, err, pawl.ErrInvalid)
}

// Rule: a run that cannot start because of its codec keeps its tick due, and the tick fires once the codec works. No
// other schedule waits for it.
func keepsDue(k *kit) {
	var c brokenCodec
	e := workflow.Open(k.q, &workflow.Options{Build: "1", Codec: &c, Logger: hclog.NewNullLogger()})
	f := workflow.Define("double", func(_ *workflow.Run, n int) (int, error) { return 2 * n, nil })
	stop := k.work(e, f)
	k.sync(schedule.Flow("at open", "@open", f, 21), hourly("a"), schedule.Flow("run", "@hourly", f, 21), hourly("z"))
	k.pass(61 * time.Minute)
	require.ElementsMatch(k, []string{"a 01 01:00:00", "z 01 01:00:00"}, k.jobs())
	require.Empty(k, k.history("run"))
	require.NoError(k, k.s.Put(k.Context(), schedule.Job("late", "@open", report, "x")))
	c.works.Store(true)
	k.pass(2 * time.Minute)
	require.Equal(k, []string{"fired 01 01:00:00"}, k.history("run"))
	require.Len(k, k.history("at open"), 1)
	require.Empty(k, k.history("late"), "it waits for the next opening")
	stop()
}

// brokenCodec encodes nothing until it works.
type brokenCodec struct{ works atomic.Bool }

func (c *brokenCodec) Encode(value []byte) ([]byte, error) {
	if !c.works.Load() {
		return nil, errors.New("no key")
	}
	return value, nil
}

func (c *brokenCodec) Decode(stored []byte) ([]byte, error) { return stored, nil }

// work runs flows until stop is called.
func (k *kit) work(e *workflow.Engine, flows ...workflow.Definition) (stop func()) {
	w := worker.New(k.q, &worker.Options{Concurrency: 2, Logger: hclog.NewNullLogger()})
	require.NoError(k, e.Handle(k.Context(), w, flows...))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Rule: a schedule starts a run of a workflow in the transaction of its tick. The ID of the run is that
// of the tick, so a backfill starts none twice.
func flows(k *kit) {
	e := workflow.Open(k.q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()})
	f := workflow.Define("double", func(_ *workflow.Run, n int) (int, error) { return 2 * n, nil }, workflow.Retain(24*time.Hour))
	k.sync(schedule.Flow("a", "@hourly", f, 21))
	defer k.work(e, f)()
	k.pass(2*time.Hour + time.Minute)
	require.Equal(k, []string{"fired 01 01:00:00", "fired 01 02:00:00"}, k.history("a"))
	created := k.info("a").Created
	n, err := k.s.Backfill(k.Context(), "a", created.Add(time.Second), created.Add(2*time.Hour), 10)
	require.NoError(k, err)
	require.Equal(k, 1, n)
	h, err := f.Handle(k.Context(), e, "a/2000-01-01T01:00:00Z")
	require.NoError(k, err)
	out, err := h.Result(k.Context())
	require.NoError(k, err)
	require.Equal(k, 42, out)
	id, err := k.s.Trigger(k.Context(), "a")
	require.NoError(k, err)
	require.NotZero(k, id)
	runs, err := e.List(k.Context(), workflow.Filter{}, "", 10)
	require.NoError(k, err)
	require.Len(k, runs.Runs, 3)
}

// Rule: each trigger starts a run of its own, also two at one time of the clock.
func triggersRuns(k *kit) {
	e := workflow.Open(k.q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()})
	f := workflow.Define("double", func(_ *workflow.Run, n int) (int, error) { return 2 * n, nil })
	k.sync(schedule.Flow("a", "@hourly", f, 21))
	first, err := k.s.Trigger(k.Context(), "a")
	require.NoError(k, err)
	second, err := k.s.Trigger(k.Context(), "a")
	require.NoError(k, err)
	require.NotEqual(k, first, second)
	runs, err := e.List(k.Context(), workflow.Filter{}, "", 10)
	require.NoError(k, err)
	require.Len(k, runs.Runs, 2)
	require.Len(k, k.history("a"), 2)
}

// Rule: a run is alive while it waits. With TerminateOther, it ends for the next tick.
func flowsOverlap(k *kit) {
	e := workflow.Open(k.q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()})
	f := workflow.Define("wait", func(r *workflow.Run, _ int) (int, error) {
		return 0, workflow.Sleep(r, "long", 100*time.Hour)
	}, workflow.Retain(240*time.Hour))
	k.sync(schedule.Flow("skips", "@hourly", f, 0), schedule.Flow("ends", "@hourly", f, 0, schedule.Overlap(schedule.TerminateOther)))
	stop := k.work(e, f)
	k.pass(2*time.Hour + time.Minute)
	require.Equal(k, []string{"fired 01 01:00:00", "skipped 01 02:00:00"}, k.history("skips"))
	require.Equal(k, []string{"fired 01 01:00:00", "buffered 01 02:00:00"}, k.history("ends"))
	h, err := f.Handle(k.Context(), e, schedule.RunID("ends", time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)))
	require.NoError(k, err)
	_, err = h.Result(k.Context())
	require.ErrorIs(k, err, workflow.ErrTerminated)
	require.Empty(k, k.info("ends").Buffered)
	stop()
	synctest.Wait()
}
