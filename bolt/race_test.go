package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// ledger is what the callers of a queue know from their answers. It is written after the
// answer, so it may lag behind the queue.
type ledger struct {
	mu     sync.Mutex
	stored map[pawl.ID]bool
	gone   map[pawl.ID]bool
	dead   map[pawl.ID]bool
	held   map[pawl.ID]uint64 // tokens of leases that were granted and not settled
	wrong  []error
}

func (b *ledger) note(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn()
}

func (b *ledger) complain(format string, args ...any) {
	b.note(func() { b.wrong = append(b.wrong, fmt.Errorf(format, args...)) })
}

// Callers use all verbs concurrently, at random. Virtual time stands still while any of them
// works, so no lease expires by accident, and a job held twice at a time is a fault. Some
// holders forget their jobs, which the queue must take back at the end.
func TestManyCallersAtOnce(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testManyCallers(t, seed) })
		})
	}
}

func testManyCallers(t *testing.T, seed uint64) {
	const callers, rounds = 32, 40
	q := openTest(t, &Options{MaxCrashes: NoMaxCrashes})
	book := &ledger{
		stored: make(map[pawl.ID]bool), gone: make(map[pawl.ID]bool), dead: make(map[pawl.ID]bool),
		held: make(map[pawl.ID]uint64),
	}
	var running sync.WaitGroup
	for n := range callers {
		running.Go(func() {
			c := &caller{q: q, book: book, random: rand.New(rand.NewPCG(seed, uint64(n)))}
			for range rounds {
				c.act(t.Context())
			}
		})
	}
	running.Wait()
	require.Empty(t, book.wrong)
	checkNow(t, q)

	// Every stored job is where its callers put it.
	for id := range book.stored {
		e := find(t, q, id)
		require.Equal(t, book.gone[id], e == nil, "job %s", id)
		require.Equal(t, book.dead[id], e != nil && e.State == pawl.Dead, "job %s", id)
		require.Equal(t, book.held[id] != 0, e != nil && e.State == pawl.Leased, "job %s", id)
	}
	for _, known := range []map[pawl.ID]bool{book.gone, book.dead} {
		require.NotEmpty(t, known)
		for id := range known {
			require.True(t, book.stored[id], "job %s ran, although its caller was told that it was not stored", id)
		}
	}
	require.NotEmpty(t, book.held)

	// After a full drain nothing is lost and nothing was created.
	expire(q) // the jobs of forgetful holders
	drained := make(map[pawl.ID]bool)
	for {
		leases, err := q.Fetch(t.Context(), pawl.Request{Queues: queueNames, Max: 100, Wait: pawl.WaitFinished})
		if errors.Is(err, pawl.ErrEmpty) {
			break
		}
		require.NoError(t, err)
		for _, l := range leases {
			require.False(t, drained[l.ID], "job %s came twice", l.ID)
			drained[l.ID] = true
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
		}
	}
	for id := range book.stored {
		require.Equal(t, !book.gone[id] && !book.dead[id], drained[id], "job %s", id)
		delete(drained, id)
	}
	require.Empty(t, drained, "jobs that nobody enqueued")
	dead := all(t, q, pawl.Filter{})
	require.Len(t, dead, len(book.dead))
	for _, e := range dead {
		require.True(t, book.dead[e.ID], "job %s", e.ID)
	}
}

var queueNames = []string{"x", "y"}

// caller is one goroutine that uses a queue. It does not share its leases.
type caller struct {
	q      *Queue
	book   *ledger
	random *rand.Rand
	leases []*pawl.Lease
}

func (c *caller) act(ctx context.Context) {
	switch c.random.IntN(6) {
	case 0, 1:
		c.enqueue(ctx)
	case 2:
		c.fetch(ctx)
	case 3, 4:
		c.settle(ctx)
	case 5:
		c.other(ctx)
	}
}

func (c *caller) enqueue(ctx context.Context) {
	batch := newBatch(1 + c.random.IntN(4))
	for _, e := range batch {
		e.Kind = []string{"a", "b"}[c.random.IntN(2)]
		e.Queue = queueNames[c.random.IntN(2)]
		e.Priority = int8(c.random.IntN(3))
		e.Payload = make([]byte, c.random.IntN(2*largePayload))
		if c.random.IntN(4) == 0 {
			e.Delay = time.Duration(c.random.IntN(1000)) * time.Second
		}
	}
	// Half of the contexts end immediately: the answer says what became of the jobs.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.random.IntN(2) == 0 {
		go cancel()
	}
	err := withid.Enqueue(ctx, c.q, batch...)
	switch {
	case err == nil:
		c.book.note(func() {
			for _, e := range batch {
				c.book.stored[e.ID] = true
			}
		})
	case !errors.Is(err, pawl.ErrNotAccepted):
		c.book.complain("enqueue: %w", err)
	}
}

func (c *caller) fetch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.random.IntN(2) == 0 {
		go cancel()
	}
	leases, err := c.q.Fetch(ctx, pawl.Request{Queues: queueNames, Max: 1 + c.random.IntN(5), Wait: pawl.WaitNot})
	if err != nil && !errors.Is(err, pawl.ErrEmpty) && !errors.Is(err, pawl.ErrNotAccepted) {
		c.book.complain("fetch: %w", err)
	}
	for _, l := range leases {
		c.book.note(func() {
			if c.book.held[l.ID] != 0 || c.book.gone[l.ID] || c.book.dead[l.ID] {
				c.book.wrong = append(c.book.wrong, fmt.Errorf("job %s was given away once too often", l.ID))
			}
			c.book.held[l.ID] = l.Token
		})
		c.leases = append(c.leases, l)
	}
}

// settle ends one of the caller's leases, and then uses it once more, which must fail. If
// another caller may get the job before this one has its answer, settle writes the ledger
// before the verb.
func (c *caller) settle(ctx context.Context) {
	if len(c.leases) == 0 {
		return
	}
	l := c.leases[len(c.leases)-1]
	c.leases = c.leases[:len(c.leases)-1]
	verb := settling[c.random.IntN(len(settling))]
	c.book.note(func() { delete(c.book.held, l.ID) })
	if err := verb.end(ctx, c.q, l); err != nil {
		c.book.complain("%s: %w", verb.name, err)
	}
	c.book.note(func() {
		switch verb.name {
		case "ack":
			c.book.gone[l.ID] = true
		case "abandon":
			c.book.dead[l.ID] = true
		}
	})
	if err := c.q.Settle(ctx, l.Ack()); !errors.Is(err, pawl.ErrLeaseLost) {
		c.book.complain("a second settle: %v", err)
	}
}

func (c *caller) other(ctx context.Context) {
	var err error
	switch c.random.IntN(5) {
	case 0:
		var lost []*pawl.Lease
		if lost, err = c.q.Extend(ctx, c.leases...); len(lost) > 0 {
			c.book.complain("leases were lost: %v", lost)
		}
	case 1, 2:
		var n int
		if n, err = c.q.Reap(ctx); n > 0 {
			c.book.complain("%d leases were reaped", n)
		}
	case 3:
		_, err = c.q.Stats(ctx)
	case 4:
		n := 0
		for _, err = range c.q.Jobs(ctx, pawl.Filter{Queue: queueNames[0]}) {
			if n++; err != nil || n == 100 {
				break
			}
		}
	}
	if err != nil {
		c.book.complain("%w", err)
	}
}
