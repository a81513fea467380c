package bolt

import (
	"context"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// gate precedes every commit of a queue: it counts the commits, and holds one back on request.
// So which calls the scheduler has accepted and which still wait is a fact, not a race.
type gate struct {
	commits atomic.Int32
	next    atomic.Pointer[heldCommit]
	look    func(*bbolt.Tx) // called with every transaction before its commit; may be nil
}

type heldCommit struct {
	reached chan struct{} // closed when the scheduler reaches the commit
	leave   chan struct{} // closed by the test
}

// gateCommits puts a gate before the commits of a queue. Call it before the first operation.
func gateCommits(q *Queue) *gate {
	g := new(gate)
	q.scheduler.commitTx = func(tx *bbolt.Tx) error {
		g.commits.Add(1)
		if g.look != nil {
			g.look(tx)
		}
		if h := g.next.Swap(nil); h != nil {
			close(h.reached)
			<-h.leave
		}
		return tx.Commit()
	}
	return g
}

// hold makes the next commit wait until leave is called. Reached returns once it waits.
func (g *gate) hold() (reached, leave func()) {
	h := &heldCommit{reached: make(chan struct{}), leave: make(chan struct{})}
	g.next.Store(h)
	return func() { <-h.reached }, func() { close(h.leave) }
}

// started runs fn on its own goroutine and sends its error.
func started(fn func() error) <-chan error {
	errs := make(chan error, 1)
	go func() { errs <- fn() }()
	return errs
}

// occupy holds a commit back until release is called, so that later calls form a batch.
func (g *gate) occupy(q *Queue) (release func()) {
	reached, leave := g.hold()
	done := started(func() error {
		return withid.Enqueue(context.Background(), q, &pawl.Envelope{Kind: "occupy", Queue: "occupy"})
	})
	reached()
	return func() {
		leave()
		if err := <-done; err != nil {
			panic(err)
		}
	}
}
