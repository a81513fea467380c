package pawl

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/internal/lease"
	"github.com/gopawl/pawl/internal/runnotes"
)

// Lease is the right to run one job until a time. Holding it proves nothing after Expires: the queue
// compares the token at each use.
type Lease struct {
	*Envelope
	Token   uint64
	Length  time.Duration // how long it lasts after each grant or extension
	Expires time.Time     // when it ends unless it is extended, by the monotonic clock of this process

	// Cancelled fires if the job is cancelled while this lease holds it; package driver has its
	// methods. A nil Cancelled never fires.
	Cancelled *lease.Cancellation

	// Set by the holder before it settles, for events and counters.

	Started  time.Time // when the attempt began, by the monotonic clock
	TimedOut bool      // its timeout ended the attempt

	queue   Queue          // of the worker that runs the job, see runContext
	notes   *runnotes.Runs // of that worker; nil if nobody keeps them
	result  []byte         // for the ack; owned by the goroutine of the handler until the handler returns
	settled uint32         // atomic: 1 once the job is settled; a plain number, so that a lease may be copied
}

// markSettled notes that the job was acked in a transaction of the app, so that its holder no longer
// settles or extends the lease.
func (l *Lease) markSettled() { atomic.StoreUint32(&l.settled, 1) }

// isSettled reports whether markSettled was called.
func (l *Lease) isSettled() bool { return atomic.LoadUint32(&l.settled) == 1 }

type leaseKey struct{}

// runContext returns a context for the handler that runs the job of l, a lease of q. [Kind.Enqueue]
// reads from it which job that is; see [ErrOwnJob]. Notes collects the notes of the attempt; nil if
// nobody keeps them.
func runContext(ctx context.Context, q Queue, l *Lease, notes *runnotes.Runs) context.Context {
	l.queue, l.notes = q, notes
	return context.WithValue(ctx, leaseKey{}, l)
}

// runBy reports whether ctx belongs to the handler that runs the job id.
func runBy(ctx context.Context, id ID) bool {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return ok && l.ID == id
}
