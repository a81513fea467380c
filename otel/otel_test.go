package otel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/otel"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

var mail = pawl.Define[string]("mail", pawl.OnQueue("out"), pawl.MaxRetries(1), pawl.Backoff(pawl.Fixed(time.Second)))

var errRefused = errors.New("the server refused it")

// drain runs all jobs, each with what fn returns.
func (k *kit) drain(fn func(ctx context.Context, job *pawl.Job[string]) error) {
	k.t.Helper()
	w := worker.New(k.q, &worker.Options{
		Queues: []string{"out", pawl.DefaultQueue}, Concurrency: 1, Logger: hclog.NewNullLogger(),
		Middleware: []worker.Middleware{k.Handlers},
	})
	worker.Handle(w, mail, fn)
	require.NoError(k.t, w.Drain(k.t.Context(), pawl.WaitFinished))
}

// Rule: an enqueue is one span, and each attempt one that links to it, retries too.
func TestAttemptsLinkToTheEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		_, err := mail.Enqueue(t.Context(), k.Enqueuer(k.q), "a")
		require.NoError(t, err)
		time.Sleep(time.Second)
		k.drain(func(_ context.Context, job *pawl.Job[string]) error {
			if job.Last {
				return nil
			}
			return errRefused
		})
		require.Equal(t, `1 send out (producer)
  system=pawl
  operation.name=send
  operation.type=send
  destination.name=out
  pawl.kind=mail
  message.id=job 1
2 process out (consumer) link to 1 Error: the server refused it
  system=pawl
  operation.name=process
  operation.type=process
  destination.name=out
  message.id=job 1
  pawl.kind=mail
  pawl.attempt=1
  error.type=*errors.errorString
  pawl.outcome=nack
3 process out (consumer) link to 1
  system=pawl
  operation.name=process
  operation.type=process
  destination.name=out
  message.id=job 1
  pawl.kind=mail
  pawl.attempt=2
  pawl.outcome=ack
`, k.golden())
		require.Equal(t, map[string]float64{"destination.name=out operation.name=send": 1}, k.metric("messaging.client.sent.messages"))
		require.Equal(t, map[string]float64{"destination.name=out operation.name=send": 1}, k.metric("messaging.client.operation.duration"))
		attempts := map[string]float64{
			"destination.name=out operation.name=process pawl.kind=mail":                                1,
			"error.type=*errors.errorString destination.name=out operation.name=process pawl.kind=mail": 1,
		}
		require.Equal(t, attempts, k.metric("messaging.client.consumed.messages"))
		require.Equal(t, attempts, k.metric("messaging.process.duration"))
	})
}

// Rule: each job of a batch has a span of its own, to which the span of the batch links.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		one, two := &pawl.Envelope{Kind: "a", Queue: "x"}, &pawl.Envelope{Kind: "b", UniqueKey: "u"}
		enqueueEach(t, k.Enqueuer(k.q), one, two)
		require.Nil(t, one.Headers, "the jobs of the caller are unchanged")
		require.Equal(t, `1 create x (producer)
  system=pawl
  operation.name=create
  operation.type=create
  destination.name=x
  pawl.kind=a
  message.id=job 1
2 create default (producer)
  system=pawl
  operation.name=create
  operation.type=create
  destination.name=default
  pawl.kind=b
  message.id=job 2
3 send (client) link to 1 link to 2
  system=pawl
  operation.name=send
  operation.type=send
  batch.message_count=2
`, k.golden())
		require.Equal(t, map[string]float64{"operation.name=send": 2}, k.metric("messaging.client.sent.messages"))
	})
}

// Rule: with BatchSpan a batch has one span, whatever its size.
func TestBatchSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{BatchSpan: true})
		enqueueEach(t, k.Enqueuer(k.q), &pawl.Envelope{Kind: "a"}, &pawl.Envelope{Kind: "a"})
		require.Equal(t, `1 send default (producer)
  system=pawl
  operation.name=send
  operation.type=send
  destination.name=default
  batch.message_count=2
`, k.golden())
		for job, err := range k.q.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			require.Contains(t, job.Headers["traceparent"], k.spans.GetSpans()[0].SpanContext.SpanID().String())
		}
	})
}

// Rule: an attempt begins a trace of its own, although the context of its worker has a span.
func TestAttemptIsARoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		_, err := mail.Enqueue(t.Context(), k.Enqueuer(k.q), "a")
		require.NoError(t, err)
		ctx, span := k.trace.Tracer("app").Start(t.Context(), "main")
		w := worker.New(k.q, &worker.Options{Queues: []string{"out"}, Logger: hclog.NewNullLogger(), Middleware: []worker.Middleware{k.Handlers}})
		worker.Handle(w, mail, func(context.Context, *pawl.Job[string]) error { return nil })
		require.NoError(t, w.Drain(ctx, pawl.WaitDrained))
		span.End()
		require.Contains(t, k.golden(), "3 process out (consumer) link to 1\n")
	})
}

// Rule: a job that comes with a context keeps it, and the span links to it.
func TestContextOfTheCallerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		k := newKit(t, otel.Options{})
		_, err := mail.Enqueue(t.Context(), k.Enqueuer(k.q), "a", pawl.Header("traceparent", given))
		require.NoError(t, err)
		k.drain(func(_ context.Context, job *pawl.Job[string]) error {
			require.Equal(t, given, job.Headers["traceparent"])
			return nil
		})
		require.Contains(t, k.golden(), "1 send out (client) link to another program's\n")
		require.Contains(t, k.golden(), "2 process out (consumer) link to another program's\n")
	})
}

// Rule: with Parent the first attempt is in the trace of its enqueue, and retries link to it.
func TestParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{Parent: true})
		_, err := mail.Enqueue(t.Context(), k.Enqueuer(k.q), "a")
		require.NoError(t, err)
		time.Sleep(time.Second)
		k.drain(func(_ context.Context, job *pawl.Job[string]) error {
			if job.Last {
				return pawl.Permanent(errRefused)
			}
			panic("at the disco")
		})
		require.Contains(t, k.golden(), "2 process out (consumer) child of 1 Error: the handler panicked\n")
		require.Contains(t, k.golden(), "error.type=panic\n")
		require.Contains(t, k.golden(), "3 process out (consumer) link to 1 Error: the server refused it\n")
		require.Contains(t, k.golden(), "pawl.outcome=abandon\n")
	})
}

// Rule: an attempt that snoozes or throttles has not failed, since it counts no attempt.
func TestPostponedAttemptsDoNotFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		_, err := mail.Enqueue(t.Context(), k.Enqueuer(k.q), "a")
		require.NoError(t, err)
		results := []error{pawl.Snooze(time.Second), fmt.Errorf("429: %w", pawl.Throttle(time.Second, pawl.ThisQueue)), nil}
		k.drain(func(_ context.Context, job *pawl.Job[string]) error {
			require.Equal(t, 1, job.Attempt)
			result := results[0]
			results = results[1:]
			return result
		})
		require.Empty(t, results)
		spans := k.golden()
		require.NotContains(t, spans, "Error")
		for _, outcome := range []string{"snooze", "throttle", "ack"} {
			require.Equal(t, 1, strings.Count(spans, "pawl.outcome="+outcome+"\n"), spans)
		}
		require.Equal(t, map[string]float64{"destination.name=out operation.name=process pawl.kind=mail": 3}, k.metric("messaging.client.consumed.messages"))
	})
}

// Rule: an enqueue that fails is a span that says so.
func TestRefusedEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		_, err := k.Enqueuer(k.q).Enqueue(t.Context(), &pawl.Envelope{Kind: ""})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.Contains(t, k.golden(), "1 send default (producer) Error: invalid kind")
		_, err = k.Enqueuer(k.q).Enqueue(t.Context(), nil, nil)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	})
}

// Rule: tracing never makes a queue refuse a job, so a job that has no room goes without a context.
func TestNoRoomForHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		full := &pawl.Envelope{Kind: "mail", Headers: map[string]string{"k": strings.Repeat("v", pawl.MaxHeaderBytes-20)}}
		enqueueEach(t, k.Enqueuer(k.q), full)
		for job, err := range k.q.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			require.Len(t, job.Headers, 1)
		}
	})
}

// Rule: the trace that starts a run reaches its attempts, its steps, and its children.
func TestWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		e := workflow.Open(k.q, &workflow.Options{
			Build: "1", Logger: hclog.NewNullLogger(), Headers: k.Headers, Middleware: []workflow.Middleware{k.Steps},
		})
		charge := workflow.Define("charge", func(r *workflow.Run, in string) (string, error) {
			return workflow.Step(r, "card", func(context.Context) (string, error) { return in, nil })
		})
		order := workflow.Define("order", func(r *workflow.Run, in string) (string, error) {
			if err := workflow.Sleep(r, "settle", time.Hour); err != nil {
				return "", err
			}
			return workflow.Call(r, "pay", charge, in)
		})
		w := k.worker()
		require.NoError(t, e.Handle(t.Context(), w, order, charge))

		ctx, request := k.trace.Tracer("app").Start(t.Context(), "POST /orders")
		h, err := order.Start(ctx, e, "1042", "12")
		require.NoError(t, err)
		request.End()
		time.Sleep(time.Millisecond)
		running, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(running) }()
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		stop()
		require.NoError(t, <-ended)

		wake := func(number, leads, job, flow string) string {
			return number + " process default (consumer) link to " + leads + `
  system=pawl
  operation.name=process
  operation.type=process
  destination.name=default
  message.id=` + job + `
  pawl.kind=workflow/` + flow + `
  pawl.attempt=1
  pawl.outcome=ack
`
		}
		require.Equal(t, "1 POST /orders (internal)\n"+
			wake("2", "1", "job 1", "order")+ // until it sleeps
			wake("3", "1", "job 1", "order")+ // until it waits for the child
			wake("4", "3", "job 2", "charge")+
			`5 step card (internal) child of 4
  pawl.workflow.flow=charge
  pawl.workflow.id=1042/pay
  pawl.workflow.run=job 2
  pawl.workflow.step=card
  pawl.workflow.attempt=1
`+wake("6", "1", "job 1", "order"), k.golden())
	})
}

// Rule: the gauges are the figures of the queue.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		stop, err := k.Observe(k.q)
		require.NoError(t, err)
		enqueueEach(t, k.q, &pawl.Envelope{Kind: "a"}, &pawl.Envelope{Kind: "a", Delay: time.Hour})
		require.NoError(t, k.q.Pause(t.Context(), pawl.DefaultQueue))
		time.Sleep(5 * time.Second)
		require.Equal(t, map[string]float64{
			"queue=default state=ready": 1, "queue=default state=blocked": 0, "queue=default state=delayed": 1,
			"queue=default state=leased": 0, "queue=default state=dead": 0, "queue=default state=completed": 0,
		}, k.metric("pawl.jobs"))
		require.Equal(t, map[string]float64{"queue=default": 1}, k.metric("pawl.queue.paused"))
		require.NotZero(t, k.metric("pawl.file.size")[""])
		require.NoError(t, stop())
		require.Empty(t, k.metric("pawl.jobs"))
	})
}

// source is a queue that has every figure.
type source struct{}

func (source) Stats(context.Context) (pawl.Stats, error) {
	return pawl.Stats{
		Queues:  []pawl.QueueStats{{Name: "mail", Counts: pawl.Counts{Held: 2}, Rests: time.Now().Add(time.Hour)}},
		Storage: pawl.Storage{Size: 3, Free: 1, Max: 9},
	}, nil
}

// Rule: each figure that package metrics has of a queue's state has a gauge.
func TestObserveHasEveryFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, otel.Options{})
		stop, err := k.Observe(source{})
		require.NoError(t, err)
		families, err := metrics.Families(t.Context(), source{}, nil)
		require.NoError(t, err)
		require.Len(t, k.metrics(), len(families))
		require.Equal(t, map[string]float64{"queue=mail": 3600}, k.metric("pawl.queue.rest"))
		require.Equal(t, map[string]float64{"queue=mail": 2}, k.metric("pawl.held_keys"))
		require.NoError(t, stop())
	})
}
