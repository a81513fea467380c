// Package otel traces jobs and workflows with OpenTelemetry, by its conventions for messaging, and
// exports the state of a queue as metrics.
//
//	o, err := otel.New(nil)
//	jobs := o.Enqueuer(q) // enqueue through it
//	w := worker.New(q, &worker.Options{Middleware: []worker.Middleware{o.Handlers}})
//	e := workflow.Open(q, &workflow.Options{Middleware: []workflow.Middleware{o.Steps}, Headers: o.Headers})
//
// Spans:
//
//   - "send QUEUE", of kind producer: an Enqueue of one job. Its context travels in the headers
//     traceparent and tracestate of the job. A job that has a traceparent keeps it; the span is of kind
//     client then, and links to it.
//   - "create QUEUE", of kind producer: one job of an Enqueue of several, whose context travels with it.
//     The span "send QUEUE", of kind client, links to all of them.
//   - "process QUEUE", of kind consumer: one attempt of a job. It links to the span that created the job,
//     or is its child; see [Options].
//   - "step NAME", of kind internal: one attempt of a step of a workflow, within the attempt of its run.
//     Each time that a run wakes it has a span "process QUEUE" of its own.
//
// The metrics messaging.client.sent.messages, messaging.client.operation.duration,
// messaging.client.consumed.messages, and messaging.process.duration come with the spans. [Tracing.Observe] adds
// the state of a queue.
package otel

import (
	"context"
	"errors"
	"fmt"
	"maps"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

const scope = "github.com/gopawl/pawl/otel"

// Options are the settings of tracing. A nil *Options and every zero field mean the default.
type Options struct {
	// TracerProvider makes the spans. The default is the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. The default is the global one.
	MeterProvider metric.MeterProvider

	// Propagator writes the context of a trace into headers, and reads it. The default is
	// propagation.TraceContext, the W3C headers.
	Propagator propagation.TextMapPropagator

	// Parent makes the span that created a job the parent of its first attempt, so that both are in one trace. By default
	// attempts begin traces of their own, with a link. Retries always do.
	Parent bool

	// BatchSpan gives all jobs of an Enqueue the context of its span "send", without spans "create". It
	// is for large batches.
	BatchSpan bool
}

// Tracing makes the spans and metrics of one program. Its methods are safe for concurrent use.
type Tracing struct {
	opts      Options
	tracer    trace.Tracer
	meter     metric.Meter
	sent      metric.Int64Counter
	consumed  metric.Int64Counter
	operation metric.Float64Histogram
	process   metric.Float64Histogram
}

// New returns tracing with the given options, or the error of the meter provider.
func New(opts *Options) (*Tracing, error) {
	t := &Tracing{}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.TracerProvider == nil {
		t.opts.TracerProvider = api.GetTracerProvider()
	}
	if t.opts.MeterProvider == nil {
		t.opts.MeterProvider = api.GetMeterProvider()
	}
	if t.opts.Propagator == nil {
		t.opts.Propagator = propagation.TraceContext{}
	}
	t.tracer = t.opts.TracerProvider.Tracer(scope)
	t.meter = t.opts.MeterProvider.Meter(scope)
	var errs [4]error
	t.sent, errs[0] = t.meter.Int64Counter("messaging.client.sent.messages",
		metric.WithUnit("{message}"), metric.WithDescription("Jobs that were enqueued."))
	t.consumed, errs[1] = t.meter.Int64Counter("messaging.client.consumed.messages",
		metric.WithUnit("{message}"), metric.WithDescription("Attempts of jobs."))
	bounds := metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
	t.operation, errs[2] = t.meter.Float64Histogram("messaging.client.operation.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of enqueues."), bounds)
	t.process, errs[3] = t.meter.Float64Histogram("messaging.process.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of attempts."), bounds)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make instruments: %w", err)
	}
	return t, nil
}

// Headers returns the context of the current span as headers of a job; see workflow.Options.
func (t *Tracing) Headers(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	t.opts.Propagator.Inject(ctx, carrier)
	return fit(nil, carrier)
}

// maxContext is how many bytes the headers of a trace may have.
const maxContext = 512

// fit adds the headers of a trace to the headers of a job, if they are within the limits of a job. Tracing must
// not make a queue refuse a job.
func fit(headers map[string]string, carrier propagation.MapCarrier) map[string]string {
	bytes := func(headers map[string]string) (n int) {
		for key, value := range headers {
			n += len(key) + len(value)
		}
		return n
	}
	if bytes(carrier) > maxContext {
		delete(carrier, "tracestate") // the longest by far, and the only one that a trace does not need
	}
	own := bytes(carrier)
	if len(carrier) == 0 || own > maxContext || len(headers)+len(carrier) > pawl.MaxHeaders || bytes(headers)+own > pawl.MaxHeaderBytes {
		return headers
	}
	all := maps.Clone(headers)
	if all == nil {
		all = make(map[string]string, len(carrier))
	}
	maps.Copy(all, carrier)
	return all
}

// creation returns the context of the span that created a job.
func (t *Tracing) creation(e *pawl.Envelope) trace.SpanContext {
	ctx := t.opts.Propagator.Extract(context.Background(), propagation.MapCarrier(e.Headers))
	return trace.SpanContextFromContext(ctx)
}

// operation returns the attributes of an operation on a queue.
func operation(name, kind, queue string) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("messaging.system", "pawl"),
		attribute.String("messaging.operation.name", name),
		attribute.String("messaging.operation.type", kind),
	}
	if queue != "" {
		all = append(all, attribute.String("messaging.destination.name", queue))
	}
	return all
}

// fail marks a span as failed, and returns the attribute error.type of its metrics.
func fail(span trace.Span, err error) attribute.KeyValue {
	kind := attribute.String("error.type", errorType(err))
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(kind)
	return kind
}

// errPanic is the error of a handler that did not return.
var errPanic = errors.New("the handler panicked")

// errorType names the class of an error. The texts of errors are too many for an attribute.
func errorType(err error) string {
	for _, class := range []struct {
		err  error
		name string
	}{
		{errPanic, "panic"}, {worker.ErrTimeout, "timeout"}, {context.DeadlineExceeded, "timeout"},
		{worker.ErrCancelled, "cancelled"}, {worker.ErrStopping, "stopping"}, {context.Canceled, "cancelled"},
	} {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}
