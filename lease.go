package pawl

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/internal/lease"
	"github.com/gopawl/pawl/internal/runnotes"
)

// Lease is the right to run one job until a time. Holding it proves nothing after
// Expires: the token is compared when it is used.
type Lease struct {
	*Envelope
	Token   uint64
	Length  time.Duration // how long a lease lasts from when it is given or extended
	Expires time.Time     // when this one ends unless it is extended, on this process's monotonic time

	// Cancelled fires when the job is cancelled while this lease holds it; package driver has
	// its methods. Nil never does.
	Cancelled *lease.Cancellation

	// Set by the holder before it settles, for events and counters.

	Started  time.Time // when the run began, on monotonic time
	TimedOut bool      // the run was ended by its timeout

	queue   Queue          // of the worker that runs the job, see runContext
	notes   *runnotes.Runs // of that worker; nil if nobody keeps them
	result  []byte         // for the ack; the goroutine of the handler owns it until it returns
	settled uint32         // atomic: 1 once the job is settled; a plain number, so that a lease may be copied
}

// markSettled notes that the job was acked in a transaction of the app's, so that its holder
// neither settles nor extends the lease any more.
func (l *Lease) markSettled() { atomic.StoreUint32(&l.settled, 1) }

// isSettled reports whether markSettled was called.
func (l *Lease) isSettled() bool { return atomic.LoadUint32(&l.settled) == 1 }

type leaseKey struct{}

// runContext returns a context for the handler that runs the job of l, which is of q. [Kind.Enqueue]
// learns from it which job that is; see [ErrOwnJob]. Notes collects what the run says of itself; nil if
// nobody keeps it.
func runContext(ctx context.Context, q Queue, l *Lease, notes *runnotes.Runs) context.Context {
	l.queue, l.notes = q, notes
	return context.WithValue(ctx, leaseKey{}, l)
}

// runBy reports whether ctx belongs to the handler that runs the job id.
func runBy(ctx context.Context, id ID) bool {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return ok && l.ID == id
}
