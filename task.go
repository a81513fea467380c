package pawl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

const (
	// MaxResult is the most bytes of an encoded result.
	MaxResult = 1 << 20

	// DefaultTaskRetain is how long the record of a task, with its result, is kept after its
	// success, unless [Retain] says otherwise.
	DefaultTaskRetain = 24 * time.Hour
)

var (
	// ErrResultTooLarge says that an encoded result exceeds [MaxResult]. The job fails for good,
	// because its effect took place. Store the data elsewhere and return a reference to it.
	ErrResultTooLarge = errors.New("result too large")

	// ErrNoResult says that a job succeeded and left no result: its handler acked it in a
	// transaction without one, or it was removed because its idempotency key had succeeded.
	ErrNoResult = errors.New("job succeeded without a result")
)

// Task is a [Kind] whose handler returns a result. Make one with [DefineTask], and register its
// handler with worker.HandleTask.
type Task[In, Out any] struct{ *Kind[In] }

// DefineTask makes the task called name. It is [Define] for a kind with a result of type Out. The
// result is encoded as arguments are, in at most [MaxResult] bytes. The commit of the ack stores
// it with the record of the job. The record is kept for [DefaultTaskRetain] unless [Retain] says
// otherwise. With Retain(0), only a call that already waits, in the process that runs the job,
// gets the result.
//
// A task needs a queue with the ability [Results].
func DefineTask[In, Out any](name string, opts ...Option) *Task[In, Out] {
	return &Task[In, Out]{Define[In](name, append([]Option{Retain(DefaultTaskRetain)}, opts...)...)}
}

// Policy is [Kind.Policy]. Its error also says what is wrong with the type of the result.
func (t *Task[In, Out]) Policy() (Policy, error) {
	policy, err := t.Kind.Policy()
	if err == nil {
		err = t.checkResult()
	}
	return policy, err
}

func (t *Task[In, Out]) checkResult() error {
	if err := checkArguments(reflect.TypeFor[Out]()); err != nil {
		return fmt.Errorf("result of %s: %w", t.name, err)
	}
	return nil
}

// Enqueue is [Kind.Enqueue]. A queue without results refuses the job with [ErrUnsupported].
func (t *Task[In, Out]) Enqueue(ctx context.Context, q Enqueuer, args In, opts ...Option) (Enqueued, error) {
	e, err := t.Envelope(args, opts...)
	if err != nil {
		return Enqueued{}, err
	}
	return t.store(ctx, q, e)
}

// store is that of [Kind], and refuses what leaves no result.
func (t *Task[In, Out]) store(ctx context.Context, q Enqueuer, e *Envelope) (Enqueued, error) {
	if err := t.checkResult(); err != nil {
		return Enqueued{}, err
	}
	if able, ok := q.(interface{ Abilities() Ability }); ok {
		if err := requireOf(able.Abilities(), Results); err != nil {
			return Enqueued{}, fmt.Errorf("enqueue %s: %w", t.name, err)
		}
	}
	return t.Kind.store(ctx, q, e)
}

// SetResult makes the ack of a lease store a result. A worker calls it with what the handler
// returns. A handler that acks its job in a transaction of the app calls it before the ack.
// The errors are [ErrResultTooLarge] and [ErrPayloadEncoding].
func (t *Task[In, Out]) SetResult(l *Lease, out Out) error {
	if l == nil {
		return invalid("lease", "there is none; a handler has it from its worker, as job.Lease")
	}
	b, err := encodePayload(out)
	if errors.Is(err, ErrPayloadTooLarge) || len(b) > MaxResult {
		return fmt.Errorf("result of %s: %w: at most %d bytes are stored; return a reference to the data", t.name, ErrResultTooLarge, MaxResult)
	}
	if err != nil {
		return fmt.Errorf("result of %s: %w", t.name, err)
	}
	l.result = b
	return nil
}

// Awaiter is a queue, or a connection to one, that can wait for the end of a job.
type Awaiter interface {
	// Await returns a job once it is dead or completed. It subscribes before it looks up the
	// job, so it misses no end. If a job ends while Await waits, and its record is gone by then,
	// Await returns what the event says: a completed job without a payload.
	//
	// Errors: [ErrNotFound] if the queue never had the job, or its record is gone; [ErrClosed] if the
	// queue is closed, and [ErrPoisoned] if it stopped by itself; the context's error.
	Await(ctx context.Context, id ID) (*Envelope, error)
}

// Wait waits until a job of the task has ended, and returns its result. If the job has ended
// already, it returns at once. It does not run the job: without a worker it waits for ctx.
//
// Errors: a [*DeadError] for a dead job; [ErrNoResult]; [ErrPayloadEncoding] for a result that
// does not fit Out; and those of [Awaiter].
func (t *Task[In, Out]) Wait(ctx context.Context, q Awaiter, id ID) (out Out, err error) {
	e, err := q.Await(ctx, id)
	if err != nil {
		return out, fmt.Errorf("wait for %s: %w", t.name, err)
	}
	return t.ResultOf(e)
}

// ResultOf returns the result in the record of a job that has ended. Its errors are those of
// [Task.Wait], [ErrConflict] for a job that has not ended, and an [*InvalidError] for a job of
// another kind.
func (t *Task[In, Out]) ResultOf(e *Envelope) (out Out, err error) {
	switch {
	case e.Kind != t.name && !slices.Contains(t.aliases, e.Kind):
		return out, fmt.Errorf("job %s: %w", e.ID, invalid("kind", "%q is not %q; wait with the task that enqueued the job", e.Kind, t.name))
	case e.Death != nil:
		return out, &DeadError{ID: e.ID, Kind: e.Kind, Reason: e.Death.Reason, Text: e.LastError()}
	case e.Completed.IsZero():
		return out, fmt.Errorf("job %s: %w: it is %s, and has no result yet", e.ID, ErrConflict, e.State)
	case e.Result == nil:
		return out, fmt.Errorf("job %s: %w", e.ID, ErrNoResult)
	}
	if err := decodePayload(e.Result, &out, t.unknownFields); err != nil {
		var none Out
		return none, fmt.Errorf("result of %s: job %s: %w", t.name, e.ID, err)
	}
	return out, nil
}

// Do enqueues a job of the task, waits for it, and returns its result. The errors are those of
// [Task.Enqueue] and of [Task.Wait]. If ctx ends while Do waits, the job stays and runs.
//
// Do refuses a job with Retain(0), since its result may be gone before Do waits for it.
func (t *Task[In, Out]) Do(ctx context.Context, q interface {
	Enqueuer
	Awaiter
}, args In, opts ...Option) (out Out, err error) {
	e, err := t.Envelope(args, opts...)
	if err == nil && e.Retain == 0 {
		err = invalid("retain", "it is 0, so the result may be gone before Do waits; retain the job for some time")
	}
	if err != nil {
		return out, err
	}
	done, err := t.store(ctx, q, e)
	if err != nil {
		return out, err
	}
	return t.Wait(ctx, q, done.ID)
}

// DeadError says that a job is dead, to a caller that waits for its end.
type DeadError struct {
	ID     ID
	Kind   string
	Reason Reason
	Text   string // the last error of the job; "" for none
}

func (e *DeadError) Error() string {
	text := fmt.Sprintf("job %s of kind %q is dead (%s)", e.ID, e.Kind, e.Reason)
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}
