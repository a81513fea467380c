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
	"time"

	"github.com/hashicorp/go-hclog"
	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
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

// Rule: after random runs, the page as Prometheus parses it and the collector agree with each other
// and with a model of the queue's events.
func TestFiguresAreThoseOfTheEvents(t *testing.T) {
	for engine, open := range map[string]func(t *testing.T, o bolt.Options) queue{
		"bolt": func(t *testing.T, o bolt.Options) queue {
			q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, q.Close()) })
			return q
		},
		"memory": func(t *testing.T, o bolt.Options) queue {
			q := memory.New(&memory.Options{Logger: o.Logger, OnEvent: o.OnEvent, Collector: o.Collector})
			t.Cleanup(func() { require.NoError(t, q.Close()) })
			return q
		},
	} {
		for seed := range uint64(5) {
			t.Run(engine, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 1))
					m := newEvents()
					var tally metrics.Tally
					q := open(t, bolt.Options{Logger: hclog.NewNullLogger(), OnEvent: m.hear, Collector: &tally})
					w := &walk{t: t, q: q, random: random}
					for range 150 {
						w.step()
						if random.IntN(30) == 0 {
							synctest.Wait()
							m.requireEqual(t, collect(t, prometheus.NewCollector(q, &tally)))
						}
					}
					synctest.Wait()
					exported := collect(t, prometheus.NewCollector(q, &tally))
					m.requireEqual(t, exported)
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

// walk takes random steps over a queue.
type walk struct {
	t      *testing.T
	q      queue
	random *rand.Rand
	leases []*pawl.Lease
}

type queue interface {
	pawl.Queue
	metrics.Source
	Cancel(ctx context.Context, id pawl.ID) error
}

func (w *walk) step() {
	ctx := w.t.Context()
	seconds := func(n int) time.Duration { return time.Duration(w.random.IntN(n)) * time.Second }
	switch w.random.IntN(8) {
	case 0, 1, 2:
		e := &pawl.Envelope{Kind: []string{"a", "b"}[w.random.IntN(2)], Queue: []string{"x", "y", ""}[w.random.IntN(3)]}
		e.Delay = seconds(3) * time.Duration(w.random.IntN(2))
		e.MaxRetries = w.random.IntN(3)
		e.Retain = time.Duration(w.random.IntN(2)) * 24 * time.Hour
		done, err := w.q.Enqueue(ctx, e)
		require.NoError(w.t, err)
		if w.random.IntN(6) == 0 {
			require.NoError(w.t, w.q.Cancel(ctx, done[0].ID))
		}
	case 3, 4:
		leases, err := w.q.Fetch(ctx, pawl.Request{Queues: []string{"x", "y", pawl.DefaultQueue}, Max: 3, Wait: pawl.WaitNot})
		if !errors.Is(err, pawl.ErrEmpty) {
			require.NoError(w.t, err)
		}
		w.leases = append(w.leases, leases...)
	case 5, 6:
		if len(w.leases) == 0 {
			return
		}
		l := w.leases[0]
		w.leases = w.leases[1:]
		settlement := []pawl.Settlement{
			l.Ack(), l.Ack(), l.Nack(seconds(5), errors.New("failed")), l.Abandon(pawl.ReasonPermanent, errors.New("failed")),
			l.Release(), l.Snooze(seconds(5)),
		}[w.random.IntN(6)]
		if err := w.q.Settle(ctx, settlement); !errors.Is(err, pawl.ErrLeaseLost) {
			require.NoError(w.t, err)
		}
	case 7:
		time.Sleep(seconds(20)) // in the virtual time of the test
	}
}
