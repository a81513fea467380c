package workflow

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Store is what an engine needs from a queue. *bolt.Queue implements it. A Store must be
// comparable, so that the engines over one Store can share their state.
type Store interface {
	Source

	// Mutate carries out a mutation in the group commit and returns when it is durable. Size is
	// roughly how many bytes the mutation writes. Mutate returns the error of the mutation
	// unwrapped.
	Mutate(ctx context.Context, m driver.Mutation, size int) error

	// Now returns the time by the clock of the store.
	Now() time.Time

	// Done returns a channel that is closed when the store is closed.
	Done() <-chan struct{}
}

// Transactor is a [Store] whose transactions are open to the app, for [StepTx] and [StartTx].
// *bolt.Queue implements Transactor[*bbolt.Tx].
type Transactor[Tx any] interface {
	Store

	// Update runs fn in a transaction, and commits unless fn fails.
	Update(ctx context.Context, fn func(tx Tx) error) error

	// MutateTx carries out a mutation as part of a transaction.
	MutateTx(tx Tx, m driver.Mutation) error

	// In returns an enqueuer for a transaction.
	In(tx Tx) pawl.Enqueuer
}

// transactor returns the engine's store, if it has transactions of this type.
func transactor[Tx any](e *Engine) (Transactor[Tx], error) {
	q, ok := e.queue.(Transactor[Tx])
	if !ok {
		return nil, &pawl.InvalidError{Field: "transaction", Reason: fmt.Sprintf("a %T has none of type %v", e.queue, reflect.TypeFor[Tx]())}
	}
	return q, nil
}
