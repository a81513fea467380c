// Package prometheus exports the figures of a queue through the client library of Prometheus, for an
// app that has a registry. An app without one serves [metrics.Handler], which has the same figures and
// needs no dependency.
//
// The module also has a Grafana board, grafana.json, and alert rules, rules.yml.
package prometheus

import (
	"context"
	"fmt"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/gopawl/pawl/metrics"
)

// readLimit bounds a read of the queue, because a collector gets no context.
const readLimit = 10 * time.Second

// NewCollector returns a collector of the figures that [metrics.Handler] lists: the state of a queue,
// read at each collection, and the counters of a tally. Give the same tally to the queue as its
// collector. With a nil tally, it exports only the state. More are other producers, such as workers.
//
// If the queue cannot be read within 10 s, the collection fails with its error. To export several
// queues in one registry, register each with labels of its own, for example with
// prometheus.WrapRegistererWith. Otherwise the collection fails, because two queues have the same
// series.
func NewCollector(q metrics.Source, t *metrics.Tally, more ...metrics.Producer) client.Collector {
	return collector{q, t, more}
}

type collector struct {
	queue metrics.Source
	tally *metrics.Tally
	more  []metrics.Producer
}

// Describe implements [client.Collector]. It describes nothing: the metrics depend on what the queue
// has counted.
func (c collector) Describe(chan<- *client.Desc) {}

// Collect implements [client.Collector].
func (c collector) Collect(to chan<- client.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	families, err := metrics.Families(ctx, c.queue, c.tally, c.more...)
	if err != nil {
		unread := client.NewDesc("pawl_jobs", "The queue cannot be read.", nil, nil)
		to <- client.NewInvalidMetric(unread, fmt.Errorf("read the queue: %w", err))
		return
	}
	for _, f := range families {
		desc := client.NewDesc(f.Name, f.Help, f.Labels, nil)
		for _, s := range f.Samples {
			to <- metric(desc, f.Type, s)
		}
	}
}

// metric returns a sample as the client library has it. What the library refuses fails the collection.
func metric(desc *client.Desc, kind string, s metrics.Sample) client.Metric {
	var m client.Metric
	var err error
	if s.Histogram != nil {
		buckets := make(map[float64]uint64, len(s.Histogram.Bounds))
		for i, bound := range s.Histogram.Bounds {
			buckets[bound] = uint64(s.Histogram.Counts[i])
		}
		m, err = client.NewConstHistogram(desc, uint64(s.Histogram.Count), s.Histogram.Sum, buckets, s.Values...)
	} else {
		value := client.GaugeValue
		if kind == "counter" {
			value = client.CounterValue
		}
		m, err = client.NewConstMetric(desc, value, s.Value, s.Values...)
	}
	if err != nil {
		return client.NewInvalidMetric(desc, err)
	}
	return m
}
