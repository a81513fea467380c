package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopawl/pawl"
)

// Enqueuer returns an Enqueuer that makes a span for each Enqueue in q. The context of
// the span travels with the jobs.
func (t *Tracing) Enqueuer(q pawl.Enqueuer) pawl.Enqueuer { return enqueuer{t, q} }

type enqueuer struct {
	t  *Tracing
	to pawl.Enqueuer
}

// Enqueue implements [pawl.Enqueuer]. It adds headers to copies.
func (q enqueuer) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return q.to.Enqueue(ctx)
	}
	began := time.Now()
	destination := common(jobs)
	attributes := operation("send", "send", destination)
	ctx, b := q.begin(ctx, destination, attributes, jobs)
	done, err := q.to.Enqueue(ctx, b.copies...)
	b.end(jobs, done)

	if err != nil {
		attributes = append(attributes, fail(b.send, err))
	}
	q.t.operation.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attributes...))
	q.t.sent.Add(ctx, int64(len(jobs)), metric.WithAttributes(attributes...))
	b.send.End()
	return done, err
}

// batch is the spans of an Enqueue.
type batch struct {
	send    trace.Span
	created []trace.Span // one for each job, nil for jobs without
	copies  []*pawl.Envelope
}

// begin starts the spans.
func (q enqueuer) begin(ctx context.Context, destination string, attributes []attribute.KeyValue, jobs []*pawl.Envelope) (context.Context, *batch) {
	b := &batch{created: make([]trace.Span, len(jobs)), copies: make([]*pawl.Envelope, len(jobs))}
	single := len(jobs) == 1 || q.t.opts.BatchSpan
	kind := trace.SpanKindClient
	if single && (len(jobs) > 1 || jobs[0] == nil || !q.t.creation(jobs[0]).IsValid()) {
		kind = trace.SpanKindProducer // the jobs carry its context
	}
	var links []trace.Link
	contexts := make([]context.Context, len(jobs))
	for i, e := range jobs {
		switch {
		case e == nil: // the queue refuses it
		case q.t.creation(e).IsValid():
			links = append(links, trace.Link{SpanContext: q.t.creation(e)})
		case !single:
			created := append(operation("create", "create", queueOf(e)), attribute.String("messaging.pawl.kind", e.Kind))
			contexts[i], b.created[i] = q.t.tracer.Start(ctx, name("create", queueOf(e)),
				trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(created...))
			links = append(links, trace.Link{SpanContext: b.created[i].SpanContext()})
		}
	}
	if len(jobs) > 1 {
		attributes = append(attributes[:len(attributes):len(attributes)], attribute.Int("messaging.batch.message_count", len(jobs)))
	} else if jobs[0] != nil {
		attributes = append(attributes[:len(attributes):len(attributes)], attribute.String("messaging.pawl.kind", jobs[0].Kind))
	}
	ctx, b.send = q.t.tracer.Start(ctx, name("send", destination),
		trace.WithSpanKind(kind), trace.WithAttributes(attributes...), trace.WithLinks(links...))
	q.copy(ctx, b, jobs, contexts)
	return ctx, b
}

// copy makes the jobs with their headers.
func (q enqueuer) copy(send context.Context, b *batch, jobs []*pawl.Envelope, contexts []context.Context) {
	copies := make(map[*pawl.Envelope]*pawl.Envelope, len(jobs))
	for i, e := range jobs {
		if b.copies[i] = e; e == nil || q.t.creation(e).IsValid() {
			continue
		}
		own, twice := copies[e]
		if !twice { // the queue refuses an envelope that is in the batch twice
			c := *e
			own = &c
			carrier := propagation.MapCarrier{}
			ctx := send
			if contexts[i] != nil {
				ctx = contexts[i]
			}
			q.t.opts.Propagator.Inject(ctx, carrier)
			own.Headers = fit(e.Headers, carrier)
			copies[e] = own
		}
		b.copies[i] = own
	}
}

// end ends the spans of the jobs, and names the jobs in them.
func (b *batch) end(jobs []*pawl.Envelope, done []pawl.Enqueued) {
	for i := range jobs {
		span := b.created[i]
		if span == nil && len(jobs) == 1 {
			span = b.send
		}
		if span == nil {
			continue
		}
		if i < len(done) {
			span.SetAttributes(attribute.String("messaging.message.id", done[i].ID.String()))
			if done[i].Existing {
				span.SetAttributes(attribute.Bool("messaging.pawl.existing", true))
			}
		}
		if span != b.send {
			span.End()
		}
	}
}

// common returns the queue of all jobs, or "" for jobs of several queues.
func common(jobs []*pawl.Envelope) (queue string) {
	for i, e := range jobs {
		if e == nil || i > 0 && queueOf(e) != queue {
			return ""
		}
		queue = queueOf(e)
	}
	return queue
}

func queueOf(e *pawl.Envelope) string {
	if e.Queue == "" {
		return pawl.DefaultQueue
	}
	return e.Queue
}

// name returns the name of a span, by the conventions for messaging.
func name(operation, queue string) string {
	if queue == "" {
		return operation
	}
	return operation + " " + queue
}
