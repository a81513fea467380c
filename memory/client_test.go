package memory_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/queuetest"
)

// client is one of several clients of a queue that outlives them, as a server does.
type client struct {
	*memory.Queue
	open  context.Context // ends with Close
	close context.CancelFunc

	mu    sync.RWMutex // held by readers while they make a call
	calls sync.WaitGroup
}

// servers are queues by their folders.
type servers struct {
	mu  sync.Mutex
	all map[string]*memory.Queue
}

// client opens a client of the queue of a folder.
func (s *servers) client(t testing.TB, dir string, settings queuetest.Settings) pawl.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.all[dir]
	if q == nil {
		q = newQueue(settings)
		s.all[dir] = q
		t.Cleanup(func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return newClient(q)
}

func newClient(q *memory.Queue) *client {
	c := &client{Queue: q}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// restarted is client after all others have been closed.
func (s *servers) restarted(t testing.TB, dir string, settings queuetest.Settings) pawl.Queue {
	c := s.client(t, dir, settings)
	c.(*client).ForgetTurns()
	return c
}

// Rule: the contract holds for a client of a queue that outlives it and that other clients share.
func TestConformanceOfClients(t *testing.T) {
	t.Setenv("TMPDIR", memdir.New(t)) // for the folders of the suite, which stay empty
	s := &servers{all: make(map[string]*memory.Queue)}
	queuetest.Run(t, s.restarted, &queuetest.Config{
		Persists: true, Another: s.client,
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			return counts(ctx, q.(*client).Queue)
		},
		Events: true, CounterSteps: race.Fewer(2000),
	})
}

func newQueue(s queuetest.Settings) *memory.Queue {
	return memory.New(&memory.Options{
		Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, memory.NoMaxCrashes), Now: s.Now,
		OnEvent: s.OnEvent, Collector: s.Collector, Limits: s.Limits,
		Logger: hclog.NewNullLogger(),
	})
}

// Abilities are those of the queue, and to be one of several clients.
func (c *client) Abilities() pawl.Ability { return c.Queue.Abilities() | pawl.Shared }

// call makes a call unless the client is closed.
func (c *client) call(fn func() error) error {
	c.mu.RLock()
	if c.open.Err() != nil {
		c.mu.RUnlock()
		return pawl.ErrClosed
	}
	c.calls.Add(1)
	c.mu.RUnlock()
	defer c.calls.Done()
	return fn()
}

// Close ends the fetches that wait, and later calls. The queue goes on.
func (c *client) Close() error {
	c.mu.Lock()
	c.close()
	c.mu.Unlock()
	c.calls.Wait()
	return nil
}

func (c *client) Fetch(ctx context.Context, r pawl.Request) (leases []*pawl.Lease, err error) {
	err = c.call(func() (err error) {
		fetching, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.open, cancel)()
		leases, err = c.Queue.Fetch(fetching, r)
		if ctx.Err() == nil && c.open.Err() != nil && errors.Is(err, pawl.ErrNotAccepted) {
			err = pawl.ErrClosed
		}
		return err
	})
	return leases, err
}

func (c *client) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) (done []pawl.Enqueued, err error) {
	err = c.call(func() (err error) { done, err = c.Queue.Enqueue(ctx, jobs...); return err })
	return done, err
}

func (c *client) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	return c.call(func() error { return c.Queue.Settle(ctx, settlements...) })
}

func (c *client) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	err = c.call(func() (err error) { lost, err = c.Queue.Extend(ctx, leases...); return err })
	return lost, err
}

func (c *client) Reap(ctx context.Context) (n int, err error) {
	err = c.call(func() (err error) { n, err = c.Queue.Reap(ctx); return err })
	return n, err
}

func (c *client) Await(ctx context.Context, id pawl.ID) (e *pawl.Envelope, err error) {
	err = c.call(func() (err error) {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.open, cancel)()
		e, err = c.Queue.Await(waiting, id)
		if ctx.Err() == nil && c.open.Err() != nil && errors.Is(err, context.Canceled) {
			err = pawl.ErrClosed
		}
		return err
	})
	return e, err
}

func (c *client) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	err = c.call(func() (err error) { stats, err = c.Queue.Stats(ctx); return err })
	return stats, err
}

func (c *client) Job(ctx context.Context, id pawl.ID) (e *pawl.Envelope, err error) {
	err = c.call(func() (err error) { e, err = c.Queue.Job(ctx, id); return err })
	return e, err
}

func (c *client) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		if c.open.Err() != nil {
			yield(nil, pawl.ErrClosed)
			return
		}
		c.Queue.Jobs(ctx, f)(yield)
	}
}

func (c *client) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return c.call(func() error { return c.Queue.Retry(ctx, id, keepAttempts) })
}

func (c *client) RunNow(ctx context.Context, id pawl.ID) error {
	return c.call(func() error { return c.Queue.RunNow(ctx, id) })
}

func (c *client) Cancel(ctx context.Context, id pawl.ID) error {
	return c.call(func() error { return c.Queue.Cancel(ctx, id) })
}

func (c *client) Delete(ctx context.Context, id pawl.ID) error {
	return c.call(func() error { return c.Queue.Delete(ctx, id) })
}

func (c *client) Pause(ctx context.Context, queue string) error {
	return c.call(func() error { return c.Queue.Pause(ctx, queue) })
}

func (c *client) Resume(ctx context.Context, queue string) error {
	return c.call(func() error { return c.Queue.Resume(ctx, queue) })
}

func (c *client) Change(ctx context.Context, change pawl.Change, ids ...pawl.ID) (errs []error, err error) {
	err = c.call(func() (err error) { errs, err = c.Queue.Change(ctx, change, ids...); return err })
	return errs, err
}

func (c *client) Transfer(ctx context.Context, e *pawl.Envelope, when pawl.Condition) error {
	return c.call(func() error { return c.Queue.Transfer(ctx, e, when) })
}

// Mutate has a mutation declare what it touches first, as a store that others share does.
func (c *client) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	return c.call(func() error {
		if d, ok := m.(driver.Declared); ok {
			d.Declare(new(driver.Needs))
		}
		return c.Queue.Mutate(ctx, m, size)
	})
}

func (c *client) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	return c.call(func() error { return c.Queue.ViewRows(ctx, fn) })
}
