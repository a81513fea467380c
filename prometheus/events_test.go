package prometheus_test

import (
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// events is a model of a queue, made of its events alone.
type events struct {
	mu     sync.Mutex
	jobs   map[pawl.ID]known
	queues map[string]bool
	counts map[series]float64
	sums   map[series]sum
}

type series struct{ name, queue, kind string }

type sum struct {
	values  uint64
	seconds float64
}

// known is where a job is by its last event.
type known struct {
	queue string
	state string
	due   time.Time // of a job that waits
}

func newEvents() *events {
	return &events{jobs: make(map[pawl.ID]known), queues: make(map[string]bool), counts: make(map[series]float64), sums: make(map[series]sum)}
}

// hear applies an event, by the words of docs/contract.md.
func (m *events) hear(e pawl.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := func(names ...string) {
		for _, name := range names {
			m.counts[series{"pawl_" + name + "_total", e.Job.Queue, e.Job.Kind}]++
		}
	}
	observe := func(name string, d time.Duration) {
		at := series{"pawl_" + name, e.Job.Queue, e.Job.Kind}
		s := m.sums[at]
		m.sums[at] = sum{s.values + 1, s.seconds + d.Seconds()}
	}
	waits := func(due time.Time) { m.jobs[e.Job.ID] = known{e.Job.Queue, "", due} }
	is := func(state string) { m.jobs[e.Job.ID] = known{queue: e.Job.Queue, state: state} }
	m.queues[e.Job.Queue] = true
	switch e.Type {
	case pawl.EventEnqueued:
		waits(e.Job.NotBefore)
	case pawl.EventFetched:
		count("jobs_fetched")
		observe("jobs_age_seconds", e.At.Sub(e.Job.NotBefore))
		if !e.Job.BackoffSince.IsZero() {
			observe("retry_latency_seconds", e.At.Sub(e.Job.BackoffSince))
		}
		is("leased")
	case pawl.EventSucceeded:
		count("jobs_succeeded")
		observe("jobs_exec_seconds", e.Took)
		if is("completed"); e.Job.Retain == 0 {
			delete(m.jobs, e.Job.ID)
		}
	case pawl.EventRetried:
		count("jobs_failed", "jobs_requeued", "retries")
		observe("retry_delay_seconds", e.Delay)
		waits(e.At.Add(e.Delay))
	case pawl.EventSnoozed:
		count("jobs_snoozed")
		waits(e.Job.NotBefore)
	case pawl.EventReleased:
		count("jobs_released")
		waits(e.At)
	case pawl.EventReaped:
		count("jobs_reaped")
		waits(e.At)
	case pawl.EventDied:
		count("jobs_failed_permanently")
		switch e.Job.Death.Reason {
		case pawl.ReasonExhausted:
			count("jobs_failed", "retry_exhausted")
		case pawl.ReasonPermanent:
			count("jobs_failed")
		case pawl.ReasonCancelled:
			count("jobs_cancelled")
		case pawl.ReasonPoison:
			count("jobs_poisoned")
		}
		is("dead")
	case pawl.EventCancelled: // it dies when its lease ends
	default:
		panic("the model does not know the event " + e.Type)
	}
}

// requireEqual compares what was exported.
func (m *events) requireEqual(t *testing.T, exported map[string]*dto.MetricFamily) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	jobs := make(map[[2]string]float64)
	for _, job := range m.jobs {
		state := job.state
		switch {
		case state == "" && job.due.After(now):
			state = "delayed"
		case state == "":
			state = "ready"
		}
		jobs[[2]string{job.queue, state}]++
	}
	found := 0
	for _, sample := range exported["pawl_jobs"].GetMetric() {
		at := [2]string{sample.GetLabel()[0].GetValue(), sample.GetLabel()[1].GetValue()}
		require.Equal(t, jobs[at], sample.GetGauge().GetValue(), "jobs of %s", at)
		found += int(sample.GetGauge().GetValue())
	}
	require.Equal(t, len(m.jobs), found)

	counts, sums := make(map[series]float64), make(map[series]sum)
	for name, family := range exported {
		for _, sample := range family.GetMetric() {
			if len(sample.GetLabel()) != 2 || sample.GetLabel()[0].GetName() != "kind" {
				continue
			}
			at := series{name, sample.GetLabel()[1].GetValue(), sample.GetLabel()[0].GetValue()}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				counts[at] = sample.GetCounter().GetValue()
			case dto.MetricType_HISTOGRAM:
				sums[at] = sum{sample.GetHistogram().GetSampleCount(), sample.GetHistogram().GetSampleSum()}
			}
		}
	}
	require.Equal(t, m.counts, counts)
	require.Len(t, sums, len(m.sums))
	for at, want := range m.sums {
		require.Equal(t, want.values, sums[at].values, at)
		require.InDelta(t, want.seconds, sums[at].seconds, 1e-6, at)
	}
}
