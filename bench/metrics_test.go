package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/worker"
)

// events counts what the queue reports, by counter, queue, and kind.
type events struct {
	mu     sync.Mutex
	counts map[metrics.Figure]float64
}

func (m *events) take(e pawl.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = make(map[metrics.Figure]float64)
	}
	add := func(name string) {
		m.counts[metrics.Figure{Name: name, Labels: metrics.Labels{Queue: e.Job.Queue, Kind: e.Job.Kind}}]++
	}
	switch e.Type {
	case pawl.EventFetched:
		add("pawl_jobs_fetched_total")
		add("pawl_jobs_age_seconds")
	case pawl.EventSucceeded:
		add("pawl_jobs_succeeded_total")
		add("pawl_jobs_exec_seconds")
	case pawl.EventDied:
		add("pawl_jobs_failed_permanently_total")
	}
}

// Rule: Prometheus's own parser reads the page, and finds the figures that the events give.
func TestPrometheusReadsTheMetrics(t *testing.T) {
	type queue interface {
		pawl.Queue
		metrics.Source
		Close() error
	}
	for name, open := range map[string]func(*metrics.Tally, func(pawl.Event)) (queue, error){
		"memory": func(c *metrics.Tally, on func(pawl.Event)) (queue, error) {
			return memory.New(&memory.Options{Collector: c, OnEvent: on, Logger: hclog.NewNullLogger()}), nil
		},
		"bolt": func(c *metrics.Tally, on func(pawl.Event)) (queue, error) {
			return bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), &bolt.Options{Collector: c, OnEvent: on, Logger: hclog.NewNullLogger()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			var tally metrics.Tally
			var seen events
			q, err := open(&tally, seen.take)
			require.NoError(t, err)
			defer func() { require.NoError(t, q.Close()) }()

			random := rand.New(rand.NewPCG(1, 2))
			w := worker.New(q, &worker.Options{Queues: []string{"a", `b"\`}, Logger: hclog.NewNullLogger()})
			for _, kind := range []string{"one", "two"} {
				k := pawl.Define[int](kind, pawl.MaxRetries(0))
				worker.Handle(w, k, func(_ context.Context, job *pawl.Job[int]) error {
					if job.Args%3 == 0 {
						return errors.New("no")
					}
					return nil
				})
				for range 50 {
					_, err := k.Enqueue(ctx, q, random.IntN(100), pawl.OnQueue([]string{"a", `b"\`}[random.IntN(2)]))
					require.NoError(t, err)
				}
			}
			require.NoError(t, w.Drain(ctx, pawl.WaitFinished))

			found := scrape(t, metrics.Handler(q, &tally))
			total := make(map[string]float64)
			for f, n := range found {
				total[f.Name] += n
			}
			for f, n := range seen.counts {
				require.Equal(t, n, found[f], "%v", f)
			}
			require.Equal(t, 100.0, total["pawl_jobs_fetched_total"])
			require.NotZero(t, total["pawl_jobs_failed_permanently_total"])
			require.Equal(t, total["pawl_jobs_failed_permanently_total"], total["pawl_jobs dead"])
		})
	}
}

// scrape returns the counters, the counts of the histograms, and the jobs by state, as Prometheus
// reads them.
func scrape(t *testing.T, h http.Handler) map[metrics.Figure]float64 {
	page := httptest.NewRecorder()
	h.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page.Body)
	require.NoError(t, err)
	found := make(map[metrics.Figure]float64)
	for name, family := range families {
		for _, m := range family.Metric {
			labels := make(map[string]string)
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			f := metrics.Figure{Name: name, Labels: metrics.Labels{Queue: labels["queue"], Kind: labels["kind"]}}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				found[f] = m.Counter.GetValue()
			case dto.MetricType_HISTOGRAM:
				found[f] = float64(m.Histogram.GetSampleCount())
			case dto.MetricType_GAUGE:
				f.Name += " " + labels["state"]
				found[f] = m.Gauge.GetValue()
			}
		}
	}
	return found
}
