package admin

import (
	"context"

	"github.com/gopawl/pawl"
)

// LimitSetter is a [Store] with limits that an operator can set in place of those that the program declares,
// such as *bolt.Queue and *memory.Queue.
type LimitSetter interface {
	// SetLimits stores limits that stay in force, whatever programs declare, until SetLimits with nil. They
	// also apply to jobs that are already in the queue. SetLimits returns [pawl.ErrInvalid] if InOrder or
	// Fair differs from what the program declares.
	SetLimits(ctx context.Context, queue string, l *pawl.Limits) error
}

type limitsRequest struct {
	Queue  string
	Limits *pawl.Limits
}

var opSetLimits = defineChange("queues/limits", func(ctx context.Context, a Admin, r *limitsRequest) error {
	return a.SetLimits(ctx, r.Queue, r.Limits)
})

func (c *client) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	return send(ctx, c, opSetLimits, limitsRequest{queue, l})
}

func (d direct) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	return usingTo(d, "limits set by operators", func(q LimitSetter) error { return q.SetLimits(ctx, queue, l) })
}
