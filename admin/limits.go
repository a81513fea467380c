package admin

import (
	"context"

	"github.com/gopawl/pawl"
)

// LimitSetter is a [Store] whose operators can set other limits for a queue than its program declares, such as
// *bolt.Queue and *memory.Queue.
type LimitSetter interface {
	// SetLimits stores limits that stay in force, whatever programs declare, until SetLimits with nil. They
	// hold for the jobs that are there. Their InOrder and Fair are those that the program declares, or else
	// SetLimits returns [pawl.ErrInvalid].
	SetLimits(ctx context.Context, queue string, l *pawl.Limits) error
}

type limitsRequest struct {
	Queue  string
	Limits *pawl.Limits
}

var opSetLimits = define(operation[limitsRequest, nothing]{
	path: "queues/limits", changes: true,
	do: func(ctx context.Context, a Admin, r *limitsRequest) (nothing, error) {
		return nothing{}, a.SetLimits(ctx, r.Queue, r.Limits)
	},
})

func (c *client) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	_, err := ask(ctx, c, opSetLimits, limitsRequest{queue, l})
	return err
}

func (d direct) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	q, err := optional[LimitSetter](d.q, "limits set by operators")
	if err != nil {
		return err
	}
	return q.SetLimits(ctx, queue, l)
}
