package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Order is what a customer wants.
type Order struct {
	ID    string
	Cents int64
}

// Receipt is what comes of it.
type Receipt struct {
	Payment string
	Parcel  string
}

// Approval is the answer of somebody who looked at an order.
type Approval struct{ Yes bool }

var approval = workflow.DefineSignal[Approval]("approval")

// patience is how long an order waits for it.
const patience = 72 * time.Hour

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

// process takes one order to its end. It runs again from the top whenever the order goes on;
// a step that is done is not done again, and gives what it gave. What it returns an error
// for is undone, the last first.
//
// A step that was killed between its effect and its checkpoint runs once more. Its key is
// the same then, and the other side knows that it has had it.
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
		if o.Cents > mostCents {
			return "", pawl.Permanent(errDeclined) // the bank will say so again
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

	answer, err := approval.Wait(r, patience)
	switch {
	case errors.Is(err, workflow.ErrTimeout):
		return done, fmt.Errorf("nobody approved it within %v: %w", patience, err)
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
