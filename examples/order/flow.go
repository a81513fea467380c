package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Order is the input of the workflow.
type Order struct {
	ID    string
	Cents int64
}

// Receipt is its result.
type Receipt struct {
	Payment string
	Parcel  string
}

// Approval is a decision about an order.
type Approval struct{ Yes bool }

var approval = workflow.DefineSignal[Approval]("approval")

// approvalTimeout is how long an order waits for approval.
const approvalTimeout = 72 * time.Hour

var errRefused = errors.New("the order was refused")

// shop processes orders.
type shop struct {
	world *world
	order *workflow.Flow[Order, Receipt]
}

func newShop(w *world) *shop {
	s := &shop{world: w}
	s.order = workflow.Define("order", s.process)
	return s
}

// process handles one order. It runs again from the top whenever the order continues; completed steps
// are not repeated and return their recorded results. If it returns an error, its undo steps run, last
// first.
//
// A step that was killed between its effect and its checkpoint runs again with the same key, by which
// the service recognizes the call.
func (s *shop) process(r *workflow.Run, o Order) (Receipt, error) {
	var done Receipt
	_, err := workflow.Step(r, "reserve", func(context.Context) (string, error) {
		return s.world.call(r.Key(), "reserve", o.ID)
	})
	if err != nil {
		return done, err
	}
	r.Undo("release", func(context.Context) error {
		_, err := s.world.call(r.Key(), "release", o.ID)
		return err
	})

	done.Payment, err = workflow.Step(r, "charge", func(context.Context) (string, error) {
		if o.Cents > maxCents {
			return "", pawl.Permanent(errDeclined) // a retry would not help
		}
		return s.world.call(r.Key(), "charge", o.ID)
	})
	if err != nil {
		return done, err
	}
	r.Undo("refund", func(context.Context) error {
		_, err := s.world.call(r.Key(), "refund", o.ID)
		return err
	})

	answer, err := approval.Wait(r, approvalTimeout)
	switch {
	case errors.Is(err, workflow.ErrTimeout):
		return done, fmt.Errorf("nobody approved it within %v: %w", approvalTimeout, err)
	case err != nil:
		return done, err
	case !answer.Yes:
		return done, errRefused
	}

	done.Parcel, err = workflow.Step(r, "ship", func(context.Context) (string, error) {
		return s.world.call(r.Key(), "ship", o.ID)
	})
	return done, err
}
