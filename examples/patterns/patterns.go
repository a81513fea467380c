// Package patterns has fourteen shapes that workflows often have, each as one short flow. Copy the one
// that you need. The tests crash each flow at each of its steps, and kill a process that runs all of them.
//
//	saga.go       undo what was done when a later step fails
//	approval.go   ask the next person when nobody answers, and pay what was approved
//	timer.go      a timer that can be moved, and an action that waits until it is quiet
//	lock.go       one holder at a time
//	window.go     at most a few items at a time
//	account.go    a thing that lives as long as it is used
//	early.go      an answer before the end
//	turns.go      tenants take turns
//	stream.go     a long input in parts, and a reader of each position
//	group.go      stop all when one fails
//	inorder.go    events that arrive out of order
//	first.go      the first of an answer, a cancellation, and a deadline
package patterns

import (
	"context"

	"github.com/gopawl/pawl/workflow"
)

// World is what the flows change. A step that was interrupted by a crash runs again, so Do may be
// called again with the same key. It must then do nothing more.
type World interface {
	Do(ctx context.Context, key, what string) error
}

// do is a step that changes the world.
func do(r *workflow.Run, w World, what string) error {
	_, err := workflow.Step(r, what, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Do(ctx, r.Key(), what)
	})
	return err
}
