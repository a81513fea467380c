// Package scrape tests what Prometheus reads from the metrics of a queue on a server. It is in this module,
// which requires package postgres anyway: so neither postgres nor prometheus requires the other.
package scrape

import (
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/examples/internal/places"
	"github.com/gopawl/pawl/internal/figures"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/postgres"
)

func TestMain(m *testing.M) { os.Exit(places.Main(m)) }

// queue is a queue of these tests, which they close.
type queue interface {
	figures.Queue
	Close() error
}

// open opens a queue that follows virtual time.
func open(t *testing.T, place string, m *figures.Model, tally *metrics.Tally) (q queue) {
	t.Helper()
	var err error
	if places.IsServer(place) {
		q, err = postgres.Open(t.Context(), place, &postgres.Options{
			Now: time.Now, NoListen: true, Poll: postgres.NoPoll, Logger: hclog.NewNullLogger(), OnEvent: m.Hear, Collector: tally,
		})
	} else {
		q, err = bolt.Open(place, &bolt.Options{Logger: hclog.NewNullLogger(), OnEvent: m.Hear, Collector: tally})
	}
	require.NoError(t, err)
	return q
}

// scrape returns what Prometheus's parser finds in the page of metrics.Handler.
func scrape(t *testing.T, q metrics.Source, tally *metrics.Tally) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(q, tally).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, "%s", w.Body)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	require.NoError(t, err)
	return families
}

// figuresOf returns the figures of queues with states or kinds.
func figuresOf(families map[string]*dto.MetricFamily) map[figures.Series]figures.Value {
	all := make(map[figures.Series]figures.Value)
	for name, family := range families {
		for _, sample := range family.GetMetric() {
			if len(sample.GetLabel()) != 2 {
				continue
			}
			at := figures.Series{Name: name}
			for _, l := range sample.GetLabel() {
				if l.GetName() == "queue" {
					at.Queue = l.GetValue()
				} else {
					at.Label = l.GetValue()
				}
			}
			h := sample.GetHistogram()
			all[at] = figures.Value{Number: sample.GetGauge().GetValue() + sample.GetCounter().GetValue() + h.GetSampleSum(), Observed: h.GetSampleCount()}
		}
	}
	return all
}

// Rule: after random runs, what Prometheus's parser finds in the page of a queue agrees with a model of the
// queue's events: over a server as over a file.
func TestFiguresAreThoseOfTheEvents(t *testing.T) {
	places.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		synctest.Test(t, func(t *testing.T) {
			m := figures.NewModel()
			var tally metrics.Tally
			q := open(t, place, m, &tally)
			defer func() { require.NoError(t, q.Close()) }()
			w := &figures.Walk{T: t, Queue: q, Random: rand.New(rand.NewPCG(1, 1))}
			for step := range 150 {
				if w.Step(); step%30 == 29 {
					synctest.Wait()
					m.RequireEqual(t, figuresOf(scrape(t, q, &tally)))
				}
			}
		})
	})
}
