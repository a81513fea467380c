package workflow

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Store is what an engine needs of a queue. A *bolt.Queue is one. It is comparable: the engines
// over one Store know each other by it.
type Store interface {
	Source

	// Mutate carries out a mutation in the group commit, and returns when it is durable. Size
	// is about how many bytes it writes. The error of a mutation is returned unwrapped.
	Mutate(ctx context.Context, m driver.Mutation, size int) error

	// Now returns the time by the clock of the store.
	Now() time.Time

	// Done returns a channel that is closed when the store is.
	Done() <-chan struct{}
}

// Transactor is a [Store] whose transactions are open to the app: for [StepTx] and [StartTx]. A
// *bolt.Queue is a Transactor[*bbolt.Tx].
type Transactor[Tx any] interface {
	Store

	// Update runs fn in a transaction, which it commits unless fn fails.
	Update(ctx context.Context, fn func(tx Tx) error) error

	// MutateTx carries out a mutation as part of a transaction.
	MutateTx(tx Tx, m driver.Mutation) error

	// In returns what enqueues jobs as part of a transaction.
	In(tx Tx) pawl.Enqueuer
}

// transactor returns the store of the engine, if it has transactions of this type.
func transactor[Tx any](e *Engine) (Transactor[Tx], error) {
	q, ok := e.queue.(Transactor[Tx])
	if !ok {
		return nil, &pawl.InvalidError{Field: "transaction", Reason: fmt.Sprintf("a %T has none of type %v", e.queue, reflect.TypeFor[Tx]())}
	}
	return q, nil
}
