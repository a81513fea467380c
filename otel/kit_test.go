package otel_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/otel"
	"github.com/gopawl/pawl/worker"
)

// kit is a queue with tracing, whose spans and metrics stay in memory.
type kit struct {
	*otel.Tracing
	t     *testing.T
	q     *bolt.Queue
	spans *tracetest.InMemoryExporter
	read  *sdkmetric.ManualReader
	trace *sdktrace.TracerProvider
}

func newKit(t *testing.T, opts otel.Options) *kit {
	t.Helper()
	k := &kit{t: t, spans: tracetest.NewInMemoryExporter(), read: sdkmetric.NewManualReader()}
	k.trace = sdktrace.NewTracerProvider(sdktrace.WithSyncer(k.spans), sdktrace.WithIDGenerator(&counter{}))
	opts.TracerProvider = k.trace
	opts.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(k.read))
	var err error
	k.Tracing, err = otel.New(&opts)
	require.NoError(t, err)
	k.q, err = bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.q.Close()) })
	return k
}

// worker returns a traced worker of one slot.
func (k *kit) worker() *worker.Worker {
	return worker.New(k.q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger(), Middleware: []worker.Middleware{k.Handlers}})
}

// golden writes spans in the order of their starts, with names in place of IDs: the parent and the
// links of a span by the name and the number of the span that they lead to.
func (k *kit) golden() string {
	k.t.Helper()
	spans := k.spans.GetSpans().Snapshots()
	slices.SortFunc(spans, func(a, b sdktrace.ReadOnlySpan) int {
		return strings.Compare(a.SpanContext().SpanID().String(), b.SpanContext().SpanID().String())
	})
	names := make(map[trace.SpanID]string)
	for i, s := range spans {
		names[s.SpanContext().SpanID()] = fmt.Sprintf("%d", i+1)
	}
	name := func(c trace.SpanContext) string {
		if n := names[c.SpanID()]; n != "" {
			return n
		}
		return "another program's"
	}
	ids := make(map[string]string)
	var b strings.Builder
	for i, s := range spans {
		fmt.Fprintf(&b, "%d %s (%s)", i+1, s.Name(), s.SpanKind())
		if s.Parent().IsValid() {
			fmt.Fprintf(&b, " child of %s", name(s.Parent()))
			require.Equal(k.t, s.Parent().TraceID(), s.SpanContext().TraceID())
		}
		for _, l := range s.Links() {
			fmt.Fprintf(&b, " link to %s", name(l.SpanContext))
		}
		if s.Status().Description != "" {
			fmt.Fprintf(&b, " %s: %s", s.Status().Code, s.Status().Description)
		}
		b.WriteByte('\n')
		for _, a := range s.Attributes() {
			value := a.Value.Emit()
			if a.Key == "messaging.message.id" || a.Key == "pawl.workflow.run" {
				if ids[value] == "" {
					ids[value] = fmt.Sprintf("job %d", len(ids)+1)
				}
				value = ids[value]
			}
			fmt.Fprintf(&b, "  %s=%s\n", strings.TrimPrefix(string(a.Key), "messaging."), value)
		}
	}
	return b.String()
}

// counter gives spans their IDs in the order of their starts.
type counter struct{ last atomic.Uint64 }

func (c *counter) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], c.last.Add(1))
	return id
}

func (c *counter) NewIDs(ctx context.Context) (traceID trace.TraceID, id trace.SpanID) {
	id = c.NewSpanID(ctx, traceID)
	copy(traceID[:], id[:])
	return traceID, id
}

// metrics collects the metrics that have samples.
func (k *kit) metrics() (found []metricdata.Metrics) {
	k.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(k.t, k.read.Collect(k.t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		found = append(found, scope.Metrics...)
	}
	return found
}

// metric returns the samples of a metric, by their attributes: a sum, a gauge, or the count of a histogram.
func (k *kit) metric(name string) map[string]float64 {
	k.t.Helper()
	samples := make(map[string]float64)
	for _, m := range k.metrics() {
		if m.Name != name {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				samples[p.Attributes.Encoded(encoder{})] = float64(p.Value)
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				samples[p.Attributes.Encoded(encoder{})] = p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				require.Equal(k.t, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, p.Bounds)
				samples[p.Attributes.Encoded(encoder{})] = float64(p.Count)
			}
		}
	}
	return samples
}

func enqueueEach(t *testing.T, q pawl.Enqueuer, jobs ...*pawl.Envelope) {
	t.Helper()
	_, err := q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
}
