// Package figures compares the metrics of an engine with a model of its events after random runs. Tests of
// several modules use it.
package figures

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Series names a figure. Label is a kind, or a state.
type Series struct{ Name, Queue, Label string }

// Value is a figure. A distribution has a sum, and the number of observed values.
type Value struct {
	Number   float64
	Observed uint64
}

// Model is what the metrics of a queue must be, made of its events alone.
type Model struct {
	mu     sync.Mutex
	jobs   map[pawl.ID]known
	values map[Series]Value
}

// known is where a job is by its last event.
type known struct {
	queue string
	state string
	due   time.Time // of a job that waits
}

// NewModel returns the model of an empty queue.
func NewModel() *Model {
	return &Model{jobs: make(map[pawl.ID]known), values: make(map[Series]Value)}
}

// Hear applies an event, by the words of docs/contract.md.
func (m *Model) Hear(e pawl.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := func(names ...string) {
		for _, name := range names {
			at := Series{"pawl_" + name + "_total", e.Job.Queue, e.Job.Kind}
			m.values[at] = Value{Number: m.values[at].Number + 1}
		}
	}
	observe := func(name string, d time.Duration) {
		at := Series{"pawl_" + name, e.Job.Queue, e.Job.Kind}
		s := m.values[at]
		m.values[at] = Value{s.Number + d.Seconds(), s.Observed + 1}
	}
	waits := func(due time.Time) { m.jobs[e.Job.ID] = known{e.Job.Queue, "", due} }
	is := func(state string) { m.jobs[e.Job.ID] = known{queue: e.Job.Queue, state: state} }
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

// jobsName is the name of the numbers of jobs, which are there for every state.
const jobsName = "pawl_jobs"

// RequireEqual compares what was exported of queues with states or kinds.
func (m *Model) RequireEqual(t *testing.T, exported map[Series]Value) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	want := make(map[Series]Value)
	for at := range exported {
		if at.Name == jobsName {
			want[at] = Value{}
		}
	}
	now := time.Now()
	for _, job := range m.jobs {
		state := job.state
		switch {
		case state == "" && job.due.After(now):
			state = "delayed"
		case state == "":
			state = "ready"
		}
		at := Series{jobsName, job.queue, state}
		want[at] = Value{Number: want[at].Number + 1}
	}
	for at, v := range m.values {
		want[at] = v
	}
	require.Len(t, exported, len(want))
	for at, v := range want {
		require.Contains(t, exported, at)
		require.Equal(t, v.Observed, exported[at].Observed, at)
		require.InDelta(t, v.Number, exported[at].Number, 1e-6, at)
	}
}

// Of returns the figures of queues with states or kinds among families.
func Of(families []metrics.Family) map[Series]Value {
	all := make(map[Series]Value)
	for _, f := range families {
		if len(f.Labels) != 2 {
			continue
		}
		for _, s := range f.Samples {
			v := Value{Number: s.Value}
			if h := s.Histogram; h != nil {
				v = Value{h.Sum, uint64(h.Count)}
			}
			all[Series{f.Name, s.Values[0], s.Values[1]}] = v
		}
	}
	return all
}
