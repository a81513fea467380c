package redis

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/core"
)

// operation is a call as the script carries it out.
type operation interface {
	// request returns the call for the script. The scheduler asks once for each group that the call is in.
	request(g *group) any
	// result takes the result. Its error is the answer.
	result(g *group, b msgpack.RawMessage) error
}

// call is an operation with its caller.
type call struct {
	operation
	core.Call
}

// newCall returns a call, with its size, roughly in jobs, and the bytes of its payloads.
func newCall(ctx context.Context, op operation, size, bytes int) *call {
	c := &call{op, core.NewCall(ctx, nil)}
	c.Jobs, c.Bytes = size, bytes
	return c
}

// stores reports whether the call stores jobs, which a server whose memory is full refuses.
func (c *call) stores() bool {
	switch c.operation.(type) {
	case *put, *restore, *transfer:
		return true
	}
	return false
}

// reopen offers a call again, and answers it if its context has ended. It reports whether the call waits.
func (c *call) reopen() bool {
	c.Reopen()
	return len(core.Withdraw([]*call{c})) > 0
}

// The limits of a group. While a script runs, the server does nothing else.
const (
	groupJobs  = 512
	groupBytes = 4 << 20 // bytes of payloads, unless a single call has more
)

// news says that other processes may have changed something.
type news struct{}

// submit leaves an operation to the scheduler and waits for its answer, or until the end of the context
// withdraws it.
func (q *Queue) submit(ctx context.Context, op operation, size, bytes int) error {
	err := q.intake.Submit(newCall(ctx, op, size, bytes))
	if errors.Is(err, pawl.ErrNotAccepted) {
		q.intake.Wake() // the scheduler forgets the call
	}
	return err
}

// settleDown lets callers that the last group has answered run, until they leave no more calls. A group
// costs a round trip, whatever its size.
func (q *Queue) settleDown() {
	for n, more := -1, q.intake.Len(); more != n; n, more = more, q.intake.Len() {
		runtime.Gosched()
	}
}

// tick is a call that changes nothing. The script carries out what is due.
type tick struct{}

func (tick) request(*group) any                      { return verb{"tick"} }
func (tick) result(*group, msgpack.RawMessage) error { return nil }

// verb is a request without arguments.
type verb struct {
	Verb string `msgpack:"v"`
}

// look carries out due moves.
func (q *Queue) look(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return q.submit(ctx, tick{}, 1, 0)
}

// mostSleep is the longest sleep of the scheduler: within this time it notices that a clock was set.
const mostSleep = time.Minute
