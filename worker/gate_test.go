package worker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// upload is a kind that needs something.
var upload = pawl.Define[string]("upload", pawl.Needs("network"), pawl.Alias("send"))

// diary has what handlers ran, in order.
type diary struct {
	mu  sync.Mutex
	ran []string
}

func (d *diary) add(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran = append(d.ran, what)
}

// taken returns what ran since the last call.
func (d *diary) taken() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	ran := d.ran
	d.ran = nil
	return ran
}

// gated returns a worker for upload and task with a gate, whose handlers add to a diary.
func gated(q pawl.Queue, g *worker.Gate) (*worker.Worker, *diary) {
	d := new(diary)
	w := newWorker(q, worker.Options{Concurrency: 1, Gates: map[string]*worker.Gate{"network": g}})
	handle := func(_ context.Context, job *pawl.Job[string]) error { d.add(job.Args); return nil }
	worker.Handle(w, upload, handle)
	worker.Handle(w, task, handle)
	return w, d
}

// send enqueues an upload, by its former name if old.
func send(t *testing.T, q pawl.Queue, args string, old bool) pawl.ID {
	t.Helper()
	kind := upload
	if old {
		kind = pawl.Define[string]("send")
	}
	done, err := kind.Enqueue(t.Context(), q, args)
	require.NoError(t, err)
	return done.ID
}

// Rule: a job runs only while the gate of each need of its kind is open. It waits unchanged, without an
// attempt, and keeps no other kind from running.
func TestClosedGate(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, test func(t *testing.T, q pawl.Queue)){
		"bolt": func(t *testing.T, test func(t *testing.T, q pawl.Queue)) {
			bubble(t, func(t *testing.T, q *bolt.Queue) { test(t, q) })
		},
		"memory": func(t *testing.T, test func(t *testing.T, q pawl.Queue)) {
			synctest.Test(t, func(t *testing.T) {
				q := memory.New(nil)
				defer func() { require.NoError(t, q.Close()) }()
				test(t, q)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T, q pawl.Queue) {
				g := new(worker.Gate)
				w, ran := gated(q, g)
				send(t, q, "a", false)
				send(t, q, "b", true)
				enqueueTo(t, q, "other")
				stop := start(t, w)
				require.Equal(t, []string{"other"}, ran.taken(), "a new gate is closed")
				g.Open()
				require.Equal(t, []string{"a", "b"}, ran.taken())
				g.Close()
				send(t, q, "c", false)
				enqueueTo(t, q, "other")
				require.Equal(t, []string{"other"}, ran.taken())
				<-time.After(time.Hour)
				require.Empty(t, ran.taken())
				g.Open()
				require.Equal(t, []string{"c"}, ran.taken())
				require.NoError(t, stop())
			})
		})
	}
}

func enqueueTo(t *testing.T, q pawl.Queue, args string) {
	t.Helper()
	_, err := task.Enqueue(t.Context(), q, args)
	require.NoError(t, err)
}

// Rule: once Close has returned, no job that waits for a slot in the worker starts. It goes back to the
// queue immediately, and counts no attempt. A job that runs already keeps running.
func TestGateClosesBeforeASlot(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		g := new(worker.Gate)
		g.Open()
		w := newWorker(slowAcks(q), worker.Options{Concurrency: 1, Gates: map[string]*worker.Gate{"network": g}})
		ran, holds, goOn := new(diary), make(chan struct{}), make(chan struct{})
		worker.Handle(w, upload, func(_ context.Context, job *pawl.Job[string]) error {
			ran.add(job.Args)
			if job.Args == "holds" {
				close(holds)
				<-goOn
			}
			return nil
		})
		start(t, w)
		_, err := q.Await(t.Context(), send(t, q, "quick", false)) // after which the worker fetches ahead
		require.NoError(t, err)
		synctest.Wait()
		both := make([]*pawl.Envelope, 2)
		for i, args := range []string{"holds", "last"} {
			both[i], _ = upload.Envelope(args)
		}
		done, err := q.Enqueue(t.Context(), both...)
		require.NoError(t, err)
		held, last := done[0].ID, done[1].ID
		<-holds
		require.Equal(t, []string{"quick", "holds"}, ran.taken())
		require.Equal(t, pawl.Leased, stored(t, q, last).State, "it waits for the slot")
		g.Close()
		close(goOn)
		_, err = q.Await(t.Context(), held)
		require.NoError(t, err)
		require.Empty(t, ran.taken())
		e := stored(t, q, last)
		require.Equal(t, pawl.Ready, e.State)
		require.Zero(t, e.Attempts+e.Crashes)
		g.Open()
		require.Equal(t, []string{"last"}, ran.taken())
	})
}

// lateFetch closes a gate between the queue's answer to a fetch and its arrival at the worker.
type lateFetch struct {
	*bolt.Queue
	gate *worker.Gate
}

func (q lateFetch) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	leases, err := q.Queue.Fetch(ctx, r)
	if err == nil {
		q.gate.Close()
	}
	return leases, err
}

// Rule: a job that arrives after its gate has closed goes back to the queue.
func TestGateClosesDuringAFetch(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		g := new(worker.Gate)
		g.Open()
		w, ran := gated(lateFetch{q, g}, g)
		id := send(t, q, "a", false)
		stop := start(t, w)
		require.Empty(t, ran.taken())
		require.NoError(t, stop())
		e := stored(t, q, id)
		require.Equal(t, pawl.Ready, e.State)
		require.Zero(t, e.Attempts+e.Crashes)
	})
}

// Rule: Drain and ProcessOnce do not wait until a gate opens, and never take a job whose gate is
// closed.
func TestDrainBehindAClosedGate(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		g := new(worker.Gate)
		w := newWorker(q, worker.Options{Gates: map[string]*worker.Gate{"network": g}})
		ran := new(diary)
		worker.Handle(w, upload, func(_ context.Context, job *pawl.Job[string]) error { ran.add(job.Args); return nil })
		send(t, q, "a", false)
		enqueueTo(t, q, "of no handler")
		require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Empty(t, ran.taken())
		g.Open()
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.Equal(t, []string{"a"}, ran.taken())
	})
}

// Rule: Why names the need of a job whose gate is closed, and says that no worker fetches a kind
// without a handler. After the worker has ended, it says so of both kinds.
func TestWhyNamesTheNeed(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		why := func(id pawl.ID) []pawl.Obstacle {
			t.Helper()
			synctest.Wait()
			all, err := q.Why(t.Context(), id)
			require.NoError(t, err)
			return all
		}
		g := new(worker.Gate)
		w, _ := gated(q, g)
		id := send(t, q, "a", false)
		foreign, err := pawl.Define[string]("foreign").Enqueue(t.Context(), q, "x")
		require.NoError(t, err)
		stop := start(t, w)
		needs := pawl.Obstacle{What: pawl.ByNeed, Queue: pawl.DefaultQueue, Kind: "upload", Need: "network"}
		require.Equal(t, []pawl.Obstacle{needs}, why(id))
		require.Equal(t, `jobs of kind "upload" need "network", whose gate is closed`, needs.String())
		nobody := pawl.Obstacle{What: pawl.ByNoWorker, Queue: pawl.DefaultQueue, Kind: "foreign"}
		require.Equal(t, []pawl.Obstacle{nobody}, why(foreign.ID))
		require.NoError(t, stop())
		g.Open() // the worker that has ended must not react
		nobody.Kind = "upload"
		require.Equal(t, []pawl.Obstacle{nobody}, why(id))
	})
}

// Rule: a worker without the gate of a kind does not start, and says what to add.
func TestMissingGate(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.Handle(w, upload, func(context.Context, *pawl.Job[string]) error { return nil })
		err := w.Run(t.Context())
		var invalid *pawl.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.ErrorContains(t, err, `needs "network"`)
		require.ErrorContains(t, err, "Options.Gates")
	})
}
