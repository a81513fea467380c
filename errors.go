package pawl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// One sentinel for each decision that a caller makes; match with errors.Is.
var (
	// ErrInvalid matches every [*InvalidError]: a queue can never accept the job or setting. Nothing
	// was stored; correct it and call again.
	ErrInvalid = errors.New("invalid")

	// ErrPayloadTooLarge says that a job's encoded arguments exceed the queue's
	// limit. Store the data elsewhere and enqueue a reference to it, or raise the
	// limit of the queue.
	ErrPayloadTooLarge = errors.New("payload too large")

	// ErrPayloadEncoding says that arguments cannot be turned into MessagePack,
	// or stored bytes cannot be turned back into the handler's type.
	ErrPayloadEncoding = errors.New("payload encoding")

	// ErrBatchTooLarge says that one call has more jobs or bytes than one commit takes.
	// Nothing was changed; split it.
	ErrBatchTooLarge = errors.New("batch too large")

	// ErrQueueFull says that more jobs of a queue, or of one of its keys, would wait than
	// [Limits].MaxWaiting or MaxWaitingPerKey allows. The text names the queue, the key, and the bound.
	// Nothing was stored. The call works again once some of these jobs run or are cancelled.
	ErrQueueFull = errors.New("queue is full")

	// ErrLeaseLost says that a lease is over: it expired, or was settled already. Nothing was
	// changed.
	ErrLeaseLost = errors.New("lease lost")

	// ErrNotAccepted says that the context ended before the operation's
	// transaction began. Nothing was stored and nothing changed.
	ErrNotAccepted = errors.New("operation was not accepted")

	// ErrUnknownOutcome says that the commit itself failed, so the operation took effect entirely or not
	// at all. If the error also matches ErrPoisoned, reopen the queue to find out. Otherwise, as after a
	// broken connection to a server, the next call may work. It is safe to settle a lease again, because
	// a token settles once. After an enqueue, look up the job by its ID. If the queue does not find it,
	// it was not stored, or it has succeeded already: only an idempotency key or [Retain] shows which.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrPoisoned says that the queue refuses all work, because a sync to the disk failed or a
	// page of its file could not be read, and more writes could corrupt it. Close it, check the
	// disk, and open it again. It has nothing to do with [ReasonPoison].
	ErrPoisoned = errors.New("queue is poisoned")

	// ErrEmpty says that Fetch found no job, and that its [Wait] asked not to wait any longer.
	ErrEmpty = errors.New("no job to fetch")

	// ErrClosed says that the queue was closed.
	ErrClosed = errors.New("queue is closed; stop what uses it, workers above all, before Close")

	// ErrNotFound says that no job in the queue has the ID. The errors of package workflow
	// about a run that is not there match it too.
	ErrNotFound = errors.New("no such job")

	// ErrConflict says that the job is in a state in which the operation does
	// not apply, or that its ID or its unique key is taken. Nothing was changed. The error of
	// package workflow about an ID that is taken matches it too.
	ErrConflict = errors.New("conflict")

	// ErrNewerFormat reports that a newer build wrote what is stored. Use that build.
	ErrNewerFormat = errors.New("file has a newer format than this build reads")

	// ErrNotEligible is the [ErrConflict] of a job that a change does not apply to: it is in
	// another state, or it does not match the condition of the change. Another caller may
	// have changed the job first. Nothing was changed.
	ErrNotEligible error = notEligible{}

	// ErrOwnJob says that a handler enqueued a job with the unique key of the job that it runs. A job
	// has its key until it ends. Nothing was stored. Return [Snooze] to run the job again.
	ErrOwnJob = errors.New("the running job itself has the unique key")

	// ErrSignature says that a job's signature is missing or does not verify.
	ErrSignature = errors.New("bad signature")

	// ErrUnsupported says that the queue lacks an [Ability]. Nothing was changed. It is
	// errors.ErrUnsupported of the standard library.
	ErrUnsupported = errors.ErrUnsupported

	// ErrCorrupt says that stored bytes are not what was written.
	ErrCorrupt = errors.New("corrupt data")
)

type notEligible struct{}

func (notEligible) Error() string { return ErrConflict.Error() }

func (notEligible) Unwrap() error { return ErrConflict }

// InvalidError says which value was refused and why. It matches [ErrInvalid].
type InvalidError struct {
	Field  string // "kind", "queue", "delay", …
	Reason string // a phrase that follows the field's name

	// Lacks is what the queue cannot do, 0 if no queue accepts the value.
	Lacks Ability
}

func (e *InvalidError) Error() string { return "invalid " + e.Field + ": " + e.Reason }

// Is makes errors.Is(err, ErrInvalid) true, and errors.Is(err, ErrUnsupported) if the queue lacks
// an ability.
func (e *InvalidError) Is(target error) bool {
	return target == ErrInvalid || e.Lacks != 0 && target == ErrUnsupported
}

// SettleError reports which leases of one [Queue.Settle] could not be settled, and why. All other leases
// were settled. It matches what any of its errors matches, such as [ErrLeaseLost].
type SettleError struct {
	Failed map[*Lease]error
}

func (e *SettleError) Error() string {
	var texts []string
	for _, err := range e.Failed {
		texts = append(texts, err.Error())
	}
	switch slices.Sort(texts); len(texts) {
	case 0:
		return "all leases were settled"
	case 1:
		return texts[0]
	}
	return fmt.Sprintf("%d leases could not be settled, one of them: %s", len(texts), texts[0])
}

// Unwrap returns the error of each lease.
func (e *SettleError) Unwrap() []error { return slices.Collect(maps.Values(e.Failed)) }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
