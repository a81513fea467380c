package driver

import (
	"time"

	"github.com/gopawl/pawl"
)

// Mutation is a change of a package's own rows that shares the group commit of a queue,
// together with operations on jobs. Package workflow is built on mutations.
//
// A mutation has two halves because an engine cannot undo one caller's part of a
// transaction. Check runs right before Apply. Everybody waits for both, so they must be
// short, and must call nothing of the queue except ops. If a commit fails because of
// another mutation in it, both run again in a new transaction, so they must keep nothing
// from an earlier run. They must not end their goroutine, as t.FailNow does.
//
// A panic in either half is an error of the mutation.
type Mutation interface {
	// Check decides whether the change can be made, and names the operations on jobs that
	// belong to it. It writes no rows. An error refuses the whole mutation: the caller gets
	// the error, and nothing is changed.
	Check(ops Ops) error

	// Apply writes the rows. The operations have been carried out by then. The caller gets
	// the error. An error also rolls back the transaction, and the other mutations in it
	// then need a second one, so Check should refuse whatever it can foresee.
	Apply(w Writer) error
}

// Ops is the operations on jobs that belong to a [Mutation]. Each method checks whether the
// operation is possible, and fails as the queue's own method does. The operations are carried
// out between Check and Apply. No operation sees the effect of an earlier one, so a mutation
// names each job, and each unique key to take, at most once. Ops must not be used after
// Check.
//
// If the store itself fails during Check, the mutation fails even if Check ignores the error. So after an
// error about one part of its work, Check can leave out that part and do the rest.
type Ops interface {
	Reader

	// Now returns the time of the transaction by the queue's clock.
	Now() time.Time

	// State returns the state of a job, "" if there is no such job.
	State(id pawl.ID) (pawl.State, error)

	// Job returns a job without a payload that is stored apart, and without its history. Its
	// bytes are valid only within Check. The error is [pawl.ErrNotFound] if there is no such
	// job.
	Job(id pawl.ID) (*pawl.Envelope, error)

	// Enqueue stores jobs; see [pawl.Enqueuer]. What it returns holds if the transaction
	// commits. A Check that runs again may get other IDs, unless the envelopes have theirs.
	Enqueue(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error)

	// Hold requires that a lease still holds its job, and extends it. What the job did so
	// far counts as progress: the count of crashes in a row starts again at zero.
	Hold(l *pawl.Lease) error

	// Save is Hold, and also stores how far the job is; see [pawl.CursorSaver].
	Save(l *pawl.Lease, cursor []byte) error

	// Ack ends a lease whose job is done.
	Ack(l *pawl.Lease) error

	// Snooze ends a lease and delays the job until a time. A time that has passed makes the
	// job ready. A job that was cancelled in the meantime becomes dead instead.
	Snooze(l *pawl.Lease, until time.Time) error

	// RunNow makes a delayed job ready.
	RunNow(id pawl.ID) error

	// Retry makes a dead job ready, and resets its attempts.
	Retry(id pawl.ID) error
}
