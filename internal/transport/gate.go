package transport

import (
	"context"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Gate admits the calls of a queue until it closes. Its zero value is open.
type Gate struct {
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
	done   sync.Once
	ended  chan struct{}
}

// Done returns what is closed when the gate closes.
func (g *Gate) Done() <-chan struct{} {
	g.done.Do(func() { g.ended = make(chan struct{}) })
	return g.ended
}

// Closed reports whether the gate is closed.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Ready returns the error of a call that must not begin.
func (g *Gate) Ready(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return pawl.ErrClosed
	case ctx.Err() != nil:
		return driver.NotAccepted(ctx)
	}
	return nil
}

// Begin is Ready for a call that Close waits for. Its end must call End.
func (g *Gate) Begin(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return pawl.ErrClosed
	case ctx.Err() != nil:
		return driver.NotAccepted(ctx)
	}
	g.calls.Add(1)
	return nil
}

// End ends a call that began.
func (g *Gate) End() { g.calls.Done() }

// Close closes the gate, and waits until the calls have ended.
func (g *Gate) Close() {
	g.Done()
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	if first {
		close(g.ended)
	}
	g.calls.Wait()
}
