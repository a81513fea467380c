package otel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gopawl/pawl/metrics"
)

// gauges has the figures of a queue's state, by their names in package metrics.
var gauges = []struct{ name, as, unit string }{
	{"pawl_jobs", "pawl.jobs", "{job}"},
	{"pawl_oldest_ready_seconds", "pawl.oldest_ready", "s"},
	{"pawl_queue_paused", "pawl.queue.paused", "1"},
	{"pawl_queue_rest_seconds", "pawl.queue.rest", "s"},
	{"pawl_held_keys", "pawl.held_keys", "{key}"},
	{"pawl_file_bytes", "pawl.file.size", "By"},
	{"pawl_file_free_bytes", "pawl.file.free", "By"},
	{"pawl_file_max_bytes", "pawl.file.max", "By"},
}

// Observe exports the state of a queue as gauges, which are read at each collection: pawl.jobs{queue, state},
// pawl.oldest_ready{queue}, pawl.queue.paused{queue}, pawl.queue.rest{queue}, pawl.held_keys{queue}, pawl.file.size,
// pawl.file.free, and pawl.file.max. They are the figures of [metrics.Handler]. Stop ends the export.
func (t *Tracing) Observe(q metrics.Source) (stop func() error, err error) {
	instruments := make(map[string]metric.Float64ObservableGauge, len(gauges))
	var all []metric.Observable
	for _, g := range gauges {
		gauge, err := t.meter.Float64ObservableGauge(g.as, metric.WithUnit(g.unit))
		if err != nil {
			return nil, fmt.Errorf("make the gauge %s: %w", g.as, err)
		}
		instruments[g.name] = gauge
		all = append(all, gauge)
	}
	registration, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		families, err := metrics.Families(ctx, q, nil)
		if err != nil {
			return fmt.Errorf("read the queue: %w", err)
		}
		for _, f := range families {
			gauge, known := instruments[f.Name]
			if !known {
				continue // a newer library may have more
			}
			for _, s := range f.Samples {
				labels := make([]attribute.KeyValue, len(f.Labels))
				for i, label := range f.Labels {
					labels[i] = attribute.String(label, s.Values[i])
				}
				o.ObserveFloat64(gauge, s.Value, metric.WithAttributes(labels...))
			}
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("observe the queue: %w", err)
	}
	return registration.Unregister, nil
}
