package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// moving is an app with a backlog. It knows its queue by one word.
type moving struct {
	t        *testing.T
	jobs     int
	runs     int
	order    *workflow.Flow[int, string]
	approved *workflow.Signal[string]

	mu      sync.Mutex
	charged map[string]int // by the key of the step
	sent    map[int]int    // by the number of the job
}

var sendMail = pawl.Define[int]("mail", pawl.Backoff(pawl.Fixed(time.Hour)))

func newMoving(t *testing.T, jobs, runs int) *moving {
	m := &moving{t: t, jobs: jobs, runs: runs, charged: make(map[string]int), sent: make(map[int]int)}
	m.approved = workflow.DefineSignal[string]("approved")
	m.order = workflow.Define("order", func(r *workflow.Run, cents int) (string, error) {
		_, err := workflow.Step(r, "charge", func(context.Context) (int, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.charged[r.Key()]++
			return cents, nil
		})
		if err != nil {
			return "", err
		}
		return m.approved.Wait(r, workflow.Forever)
	}, workflow.OnQueue("orders"))
	return m
}

// open starts the app at a place: a path or a URL.
func (m *moving) open(where string) (q engine.Queue, runs *workflow.Engine, mails, orders *worker.Worker) {
	m.t.Helper()
	q, err := engine.Open(m.t.Context(), where)
	require.NoError(m.t, err)
	quiet := hclog.NewNullLogger()
	runs = workflow.Open(q.(workflow.Store), &workflow.Options{Build: "1", Logger: quiet})
	mails = worker.New(q, &worker.Options{Concurrency: 16, Logger: quiet})
	worker.Handle(mails, sendMail, func(_ context.Context, job *pawl.Job[int]) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent[job.Args]++
		return nil
	})
	orders = worker.New(q, &worker.Options{Queues: []string{"orders"}, Concurrency: 16, Logger: quiet})
	require.NoError(m.t, runs.Handle(m.t.Context(), orders, m.order))
	return q, runs, mails, orders
}

// fill stores the backlog: ready, delayed, and dead jobs with keys and priorities, and runs that
// have made their first step.
func (m *moving) fill(where string) {
	m.t.Helper()
	q, runs, _, orders := m.open(where)
	for first := 0; first < m.jobs; first += 1000 {
		var batch []*pawl.Envelope
		for n := first; n < min(first+1000, m.jobs); n++ {
			options := []pawl.Option{pawl.Unique(fmt.Sprint(n)), pawl.Priority(int8(n % 5))}
			if n%3 == 0 {
				options = append(options, pawl.Delay(24*time.Hour), pawl.Header("n", fmt.Sprint(n)))
			}
			e, err := sendMail.Envelope(n, options...)
			require.NoError(m.t, err)
			batch = append(batch, e)
		}
		_, err := q.Enqueue(m.t.Context(), batch...)
		require.NoError(m.t, err)
	}
	leases, err := q.Fetch(m.t.Context(), pawl.Request{Max: m.jobs / 100, Wait: pawl.WaitNot})
	require.NoError(m.t, err)
	var settlements []pawl.Settlement
	for n, l := range leases {
		settlements = append(settlements, l.Abandon(pawl.ReasonPermanent, fmt.Errorf("bad gateway %d", n)))
	}
	require.NoError(m.t, q.Settle(m.t.Context(), settlements...))
	starts := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for n := range starts {
				if _, err := m.order.Start(m.t.Context(), runs, fmt.Sprint(n), n); err != nil {
					m.t.Errorf("start %d: %v", n, err)
				}
			}
		})
	}
	for n := range m.runs {
		starts <- n
	}
	close(starts)
	all.Wait()
	require.NoError(m.t, orders.Drain(m.t.Context(), pawl.WaitDrained))
	require.NoError(m.t, q.Close())
}

// jobsAt returns every job at a place, without its sequence. Of a run it returns only the kind, since
// after an import each run that waits becomes ready once.
func (m *moving) jobsAt(where string) (all map[pawl.ID]string) {
	m.t.Helper()
	q, err := engine.Open(m.t.Context(), where)
	require.NoError(m.t, err)
	defer func() { require.NoError(m.t, q.Close()) }()
	all = make(map[pawl.ID]string)
	for e, err := range q.(admin.Store).Jobs(m.t.Context(), pawl.Filter{}) {
		require.NoError(m.t, err)
		if e.Kind != sendMail.Name() {
			all[e.ID] = e.Kind
			continue
		}
		e.Seq = 0
		text, err := json.Marshal(admin.JobOf(e, admin.PayloadNone))
		require.NoError(m.t, err)
		all[e.ID] = fmt.Sprintf("%s %x", text, e.Payload)
	}
	return all
}

// move exports the backlog to a file, and imports it at another place.
func (m *moving) move(from, to string) {
	m.t.Helper()
	path := filepath.Join(m.t.TempDir(), "backlog.jsonl")
	out, err := os.Create(path)
	require.NoError(m.t, err)
	source, err := engine.Open(m.t.Context(), from)
	require.NoError(m.t, err)
	_, err = admin.Export(m.t.Context(), admin.Of(source.(admin.Store)), out, nil)
	require.NoError(m.t, err)
	require.NoError(m.t, source.Close())
	require.NoError(m.t, out.Close())
	in, err := os.Open(path)
	require.NoError(m.t, err)
	defer in.Close()
	target, err := engine.Open(m.t.Context(), to)
	require.NoError(m.t, err)
	_, err = admin.Import(m.t.Context(), admin.Of(target.(admin.Store)), in, &admin.ImportOptions{KeepIDs: true})
	require.NoError(m.t, err)
	require.NoError(m.t, target.Close())
}

// finish has the app do all the work at a place.
func (m *moving) finish(where string) {
	m.t.Helper()
	q, runs, mails, orders := m.open(where)
	for n := range m.runs {
		h, err := m.order.Handle(m.t.Context(), runs, fmt.Sprint(n))
		require.NoError(m.t, err)
		require.NoError(m.t, m.approved.Send(m.t.Context(), runs, h.Run(), "yes", "once"))
	}
	require.NoError(m.t, orders.Drain(m.t.Context(), pawl.WaitDrained))
	for n := range m.runs {
		h, err := m.order.Handle(m.t.Context(), runs, fmt.Sprint(n))
		require.NoError(m.t, err)
		result, err := h.Result(m.t.Context())
		require.NoError(m.t, err)
		require.Equal(m.t, "yes", result)
	}
	require.NoError(m.t, mails.Drain(m.t.Context(), pawl.WaitDrained))
	require.NoError(m.t, q.Close())
}

// Rule: a backlog of jobs and runs moves from a file to a server and back, and nothing changes on the
// way. To start the app at another place, only the name of the place changes. No step of a run
// happens again.
func TestBacklogMoves(t *testing.T) {
	t.Parallel()
	jobs, runs := race.Fewer(2000), race.Fewer(40)
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		jobs, runs = 100_000, 5000
	}
	loud := hclog.SetDefault(hclog.NewNullLogger()) // engine.Open takes no logger
	t.Cleanup(func() { hclog.SetDefault(loud) })
	folder := t.TempDir()
	first, server, last := filepath.Join(folder, "first.db"), urlOf("postgres", newSchema(t)), filepath.Join(folder, "last.db")
	m := newMoving(t, jobs, runs)
	m.fill(first)
	before := m.jobsAt(first)
	require.Len(t, before, jobs+runs)
	m.move(first, server)
	require.True(t, maps.Equal(before, m.jobsAt(server)))
	m.move(server, last)
	require.True(t, maps.Equal(before, m.jobsAt(last)))
	m.finish(last)
	require.Len(t, m.charged, runs)
	for key, times := range m.charged {
		require.Equal(t, 1, times, key)
	}
	ready := 0
	for n := range jobs {
		if m.sent[n] > 0 {
			require.Equal(t, 1, m.sent[n])
			ready++
		}
	}
	delayed, dead := (jobs+2)/3, jobs/100
	require.Equal(t, jobs-delayed-dead, ready)
}
