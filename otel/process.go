package otel

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Handlers is a [worker.Middleware] with a span for each attempt. Make it the first, so that the time in
// other middleware counts.
func (t *Tracing) Handlers(next worker.HandlerFunc) worker.HandlerFunc {
	return func(ctx context.Context, l *pawl.Lease) (err error) {
		began := time.Now()
		attributes := operation("process", "process", l.Queue)
		start := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(attributes...),
			trace.WithAttributes(
				attribute.String("messaging.message.id", l.ID.String()),
				attribute.String("messaging.pawl.kind", l.Kind),
				attribute.Int("messaging.pawl.attempt", l.Attempt()),
			),
		}
		created := t.creation(l.Envelope)
		if created.IsValid() && t.opts.Parent && l.Attempt() == 1 {
			ctx = trace.ContextWithRemoteSpanContext(ctx, created)
		} else if created.IsValid() {
			start = append(start, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: created}))
		}
		ctx, span := t.tracer.Start(ctx, name("process", l.Queue), start...)
		err = errPanic
		defer func() { // also runs in a panic, which continues
			outcome, failed := outcomeOf(err)
			if failed {
				attributes = append(attributes, fail(span, err))
			}
			span.SetAttributes(attribute.String("messaging.pawl.outcome", outcome))
			attributes = append(attributes, attribute.String("messaging.pawl.kind", l.Kind))
			t.process.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attributes...))
			t.consumed.Add(ctx, 1, metric.WithAttributes(attributes...))
			span.End()
		}()
		err = next(ctx, l)
		return err
	}
}

// outcomeOf returns the name of what the handler asked for.
func outcomeOf(err error) (outcome string, failed bool) {
	if err == nil {
		return "ack", false
	}
	if _, ok := pawl.SnoozeDelay(err); ok {
		return "snooze", false
	}
	if _, _, ok := pawl.ThrottleDelay(err); ok {
		return "throttle", false
	}
	if pawl.IsPermanent(err) {
		return "abandon", true
	}
	return "nack", true
}

// Steps is a [workflow.Middleware] with a span for each attempt of a step.
func (t *Tracing) Steps(next workflow.StepFunc) workflow.StepFunc {
	return func(ctx context.Context, s workflow.StepInfo) (result any, err error) {
		ctx, span := t.tracer.Start(ctx, "step "+stepName(s.Step), trace.WithAttributes(
			attribute.String("pawl.workflow.flow", s.Flow),
			attribute.String("pawl.workflow.id", s.ID),
			attribute.String("pawl.workflow.run", s.Run.String()),
			attribute.String("pawl.workflow.step", s.Step),
			attribute.Int("pawl.workflow.attempt", s.Attempt),
		))
		err = errPanic
		defer func() {
			if err != nil {
				fail(span, err)
			}
			span.End()
		}()
		result, err = next(ctx, s)
		return result, err
	}
}

// stepName is the name of a step without its scope and its number, since spans with one name are
// counted together.
func stepName(step string) string {
	if i := strings.LastIndexByte(step, '/'); i >= 0 {
		step = step[i+1:]
	}
	step, _, _ = strings.Cut(step, "#")
	return step
}
