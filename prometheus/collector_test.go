package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/figures"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/prometheus"
)

// source is a queue with given statistics.
type source struct {
	stats pawl.Stats
	err   error
}

func (s source) Stats(context.Context) (pawl.Stats, error) { return s.stats, s.err }

// collect returns what Prometheus gets from a collector, by name.
func collect(t *testing.T, c client.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	registry := client.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	return byName(families)
}

func byName(families []*dto.MetricFamily) map[string]*dto.MetricFamily {
	all := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		all[f.GetName()] = f
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil { // the library leaves out the bucket of all, which the page must have
				h.Bucket = slices.DeleteFunc(h.Bucket, func(b *dto.Bucket) bool { return math.IsInf(b.GetUpperBound(), 1) })
			}
			slices.SortFunc(m.GetLabel(), func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		}
		slices.SortFunc(f.GetMetric(), func(a, b *dto.Metric) int { return strings.Compare(labels(a), labels(b)) })
	}
	return all
}

func labels(m *dto.Metric) string {
	values := make([]string, 0, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		values = append(values, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(values, ",")
}

// parse returns what Prometheus's parser finds in the page of metrics.Handler.
func parse(t *testing.T, q metrics.Source, tally *metrics.Tally) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(q, tally).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(w.Body.Bytes()))
	require.NoError(t, err, "%s", w.Body)
	families := make([]*dto.MetricFamily, 0, len(parsed))
	for _, f := range parsed {
		families = append(families, f)
	}
	return byName(families)
}

// figuresOf returns the figures of queues with states or kinds.
func figuresOf(exported map[string]*dto.MetricFamily) map[figures.Series]figures.Value {
	all := make(map[figures.Series]figures.Value)
	for name, family := range exported {
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

// Rule: after random runs, the page as Prometheus parses it and the collector agree with each other
// and with a model of the queue's events.
func TestFiguresAreThoseOfTheEvents(t *testing.T) {
	for engine, open := range map[string]func(t *testing.T, o bolt.Options) figures.Queue{
		"bolt": func(t *testing.T, o bolt.Options) figures.Queue {
			q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, q.Close()) })
			return q
		},
		"memory": func(t *testing.T, o bolt.Options) figures.Queue {
			q := memory.New(&memory.Options{Logger: o.Logger, OnEvent: o.OnEvent, Collector: o.Collector})
			t.Cleanup(func() { require.NoError(t, q.Close()) })
			return q
		},
	} {
		for seed := range uint64(5) {
			t.Run(engine, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 1))
					m := figures.NewModel()
					var tally metrics.Tally
					q := open(t, bolt.Options{Logger: hclog.NewNullLogger(), OnEvent: m.Hear, Collector: &tally})
					w := &figures.Walk{T: t, Queue: q, Random: random}
					for range 150 {
						w.Step()
						if random.IntN(30) == 0 {
							synctest.Wait()
							m.RequireEqual(t, figuresOf(collect(t, prometheus.NewCollector(q, &tally))))
						}
					}
					synctest.Wait()
					exported := collect(t, prometheus.NewCollector(q, &tally))
					m.RequireEqual(t, figuresOf(exported))
					page := parse(t, q, &tally)
					require.Len(t, page, len(exported))
					for name, f := range exported {
						require.True(t, proto.Equal(f, page[name]), "%s\nin the page: %v\nexported: %v", name, page[name], f)
					}
				})
			})
		}
	}
}

// Rule: names that nobody expects are exported, or the collection would fail as a whole.
func TestHostileNames(t *testing.T) {
	q := source{stats: pawl.Stats{Queues: []pawl.QueueStats{{Name: "a\"} 1\nb\\\xff"}, {Name: "a\"} 1\nb\\\xfe"}, {Name: "{}"}}}}
	exported := collect(t, prometheus.NewCollector(q, nil))
	require.Len(t, exported["pawl_queue_paused"].GetMetric(), 2)
	require.Equal(t, "a\"} 1\nb\\\uFFFD", exported["pawl_queue_paused"].GetMetric()[0].GetLabel()[0].GetValue())
}

// Rule: a queue that cannot be read fails the collection, which says why.
func TestQueueThatFails(t *testing.T) {
	registry := client.NewRegistry()
	require.NoError(t, registry.Register(prometheus.NewCollector(source{err: errors.New("the file was replaced")}, nil)))
	_, err := registry.Gather()
	require.ErrorContains(t, err, "read the queue: the file was replaced")
}

// Rule: two queues share a registry when each has labels of its own.
func TestTwoQueues(t *testing.T) {
	q := source{stats: pawl.Stats{Queues: []pawl.QueueStats{{Name: "q"}}}}
	registry := client.NewRegistry()
	for _, app := range []string{"a", "b"} {
		own := client.WrapRegistererWith(client.Labels{"store": app}, registry)
		require.NoError(t, own.Register(prometheus.NewCollector(q, nil)))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, byName(families)["pawl_queue_paused"].GetMetric(), 2)
}
