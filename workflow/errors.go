package workflow

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/worker"
)

// Each sentinel stands for one decision of a caller. Match them with errors.Is.
var (
	// ErrSuspended is what each call returns once the run is suspended and does not stay in memory. The function should
	// return it, but may return anything, since its result is ignored. Deferred functions run
	// now, and again at each wake. Calls in them return ErrSuspended too. If the function does
	// not return but makes more than [MaxEntries] refused calls, its goroutine is ended, as if
	// it had returned.
	ErrSuspended = errors.New("the run waits; return from its function")

	// ErrCancelled is what the current or next call, and all later calls, return once the run
	// is being cancelled.
	ErrCancelled = errors.New("the run was cancelled")

	// ErrTerminated says that an operator ended the run at once.
	ErrTerminated = errors.New("the run was terminated")

	// ErrDeadline says that the run was cancelled because its [Deadline] has passed.
	ErrDeadline = errors.New("the deadline of the run has passed")

	// ErrTimeout says that no signal came in time.
	ErrTimeout = errors.New("no signal came in time")

	// ErrInterrupted says that the process died during a step that runs at most once. It is unknown
	// whether the step took effect.
	ErrInterrupted = errors.New("the step was interrupted, and runs at most once")

	// ErrNested says that a call was made within another call of its scope: inside the function
	// of a step, or from a goroutine that [Go] did not start.
	ErrNested = errors.New("a call was made inside another")

	// ErrAbandoned is what the calls of a branch return once another branch has won a [Race], or
	// the branch was cancelled, see [Branch.Cancel].
	ErrAbandoned = errors.New("the branch was abandoned")

	// ErrNotFound says that there is no such run. It is [pawl.ErrNotFound] for runs.
	ErrNotFound error = notFound{}

	// ErrConflict says that another run has the ID: a run with a different input, or any run if the
	// call needs a new ID. It is [pawl.ErrConflict] for runs.
	ErrConflict error = conflict{}

	// ErrNotRunning says that the run has ended, so the request comes too late.
	ErrNotRunning = errors.New("the run has ended")

	// ErrUndeclared says that a flow does not wait for a signal. See [Receives].
	ErrUndeclared = errors.New("the flow does not declare this signal")

	// ErrRejected says that a run did not accept a request. See [Update].
	ErrRejected = errors.New("the run rejected the request")

	// ErrTooMany says that a limit of this package is reached.
	ErrTooMany = errors.New("a limit of workflows is reached")

	// ErrTooLarge says that a value is larger than this package stores.
	ErrTooLarge = errors.New("value is too large")

	// ErrCodec says that a value of a run cannot be encoded or decoded, because the engine lacks the [Codec] or its
	// key.
	ErrCodec = errors.New("the codec of the engine does not fit")
)

type notFound struct{}

func (notFound) Error() string { return "no such run" }

func (notFound) Unwrap() error { return pawl.ErrNotFound }

type conflict struct{}

func (conflict) Error() string { return "the ID is taken by another run" }

func (conflict) Unwrap() error { return pawl.ErrConflict }

// errorText is what is stored of one error in a chain.
type errorText struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Type string
	Text string
}

// StepError is the error of a step, a wait or a child. It always comes from the journal, so that a
// run that continues after a crash sees the same error as before.
//
// It keeps the texts and types of the step's error, not the values. errors.Is matches an error of
// the same type and text, so it matches sentinels. A sentinel of this library matches by its text
// alone. errors.As finds only the StepError.
type StepError struct {
	Step     string // scope, name and occurrence
	Text     string // text of the error
	Attempts int

	chain []errorText
}

func (e *StepError) Error() string {
	if e.Attempts > 1 {
		return fmt.Sprintf("step %q failed %d times: %s", e.Step, e.Attempts, e.Text)
	}
	return fmt.Sprintf("step %q: %s", e.Step, e.Text)
}

// Is reports whether the step failed with an error of the type and text of target.
func (e *StepError) Is(target error) bool { return inChain(e.chain, target) }

// inChain reports whether a stored chain has an error of the type and text of target. A sentinel of
// this library has its text alone as its identity, since another release may give it another type.
func inChain(chain []errorText, target error) bool {
	if target == nil {
		return false
	}
	_, engines := target.(*driver.Sentinel)
	anyType := engines || slices.Contains(sentinels, target)
	text := ellipsis.Truncate(target.Error(), maxErrorText)
	return slices.ContainsFunc(chain, func(t errorText) bool {
		return t.Text == text && (anyType || t.Type == typeOf(target))
	})
}

// sentinels are the errors of this library that functions compare with those of their steps. Their
// texts are in journals, so no release changes them. pawl.ErrNotEligible is not in the list: it has
// the text of pawl.ErrConflict. So no release changes its type either.
var sentinels = []error{
	ErrSuspended, ErrCancelled, ErrTerminated, ErrDeadline, ErrTimeout, ErrInterrupted, ErrNested, ErrAbandoned,
	ErrNotFound, ErrConflict, ErrNotRunning, ErrUndeclared, ErrRejected, ErrTooMany, ErrTooLarge, ErrCodec, ErrNoFlow,

	pawl.ErrInvalid, pawl.ErrPayloadTooLarge, pawl.ErrPayloadEncoding, pawl.ErrBatchTooLarge,
	pawl.ErrLeaseLost, pawl.ErrNotAccepted, pawl.ErrUnknownOutcome, pawl.ErrPoisoned, pawl.ErrEmpty,
	pawl.ErrClosed, pawl.ErrNotFound, pawl.ErrConflict, pawl.ErrNewerFormat, pawl.ErrOwnJob,
	pawl.ErrSignature, pawl.ErrUnsupported, pawl.ErrCorrupt, pawl.ErrResultTooLarge, pawl.ErrNoResult,
	pawl.ErrCursorTooLarge, pawl.ErrQueueFull,

	worker.ErrTimeout, worker.ErrDeadline, worker.ErrCancelled, worker.ErrStopping,
	worker.ErrLeaseInDoubt, worker.ErrHandlerExists,
}

func typeOf(err error) string { return reflect.TypeOf(err).String() }

func textOf(err error) string {
	text := err.Error()
	if stack := driver.FailureOf(err).Stack; stack != "" {
		text += "\n\n" + stack
	}
	return ellipsis.Truncate(text, maxErrorText)
}

// chainOf returns what is stored of an error and the errors it wraps.
func chainOf(err error) (chain []errorText) {
	var walk func(error)
	walk = func(err error) {
		if err == nil || len(chain) == maxChain {
			return
		}
		chain = append(chain, errorText{Type: typeOf(err), Text: ellipsis.Truncate(err.Error(), maxErrorText)})
		switch err := err.(type) {
		case *StepError: // the errors it wraps are stored already
			chain = append(chain, err.chain[:min(len(err.chain), maxChain-len(chain))]...)
		case *UpdateError:
			chain = append(chain, err.chain[:min(len(err.chain), maxChain-len(chain))]...)
		case *pawl.InvalidError: // it matches the sentinel without wrapping it
			walk(pawl.ErrInvalid)
		case interface{ Unwrap() error }:
			walk(err.Unwrap())
		case interface{ Unwrap() []error }:
			for _, each := range err.Unwrap() {
				walk(each)
			}
		}
	}
	walk(err)
	return chain
}

// RunError is the error of a run, as [Handle.Result] returns it. errors.Is works as for a
// [StepError]. It also matches [ErrCancelled] or [ErrTerminated] if the run ended that way, and
// [ErrDeadline] if it was cancelled by its deadline.
type RunError struct {
	Flow, ID string
	Run      pawl.ID
	Status   Status // Failed, Cancelled, Terminated or Dead
	Text     string

	chain []errorText
}

func (e *RunError) Error() string {
	return fmt.Sprintf("workflow %s %q %s: %s", e.Flow, e.ID, e.Status, e.Text)
}

// Is reports whether target is the error for the status of the run, or has the type and text of the
// error that the run failed with.
func (e *RunError) Is(target error) bool {
	switch target {
	case ErrCancelled:
		return e.Status == Cancelled || inChain(e.chain, target)
	case ErrTerminated:
		return e.Status == Terminated
	}
	return inChain(e.chain, target)
}

// DeterminismError says that the function made calls that differ from its journal. The run is
// blocked: nothing is lost and no attempt is counted. It continues when another build opens the
// file or when it is resumed.
type DeterminismError struct {
	Flow, ID string
	Want     string // the journal's call: kind and step; "" if the journal has no more
	Got      string // the code's call
	Line     string // where the code makes that call, as "orders/order.go:42"; "" if it makes none
	Seq      uint32 // seq of the entry in the journal; 0 if there is none
	Build    string // the build that made the call
	Wrote    string // the build that wrote the entry
	Reason   string // what it means and what to do
}

func (e *DeterminismError) Error() string {
	s := fmt.Sprintf("the code of workflow %s does not fit the journal of %q: the journal has %s", e.Flow, e.ID, orNothing(e.Want))
	if e.Seq > 0 {
		s += fmt.Sprintf(" (entry %d, written by build %s)", e.Seq, e.Wrote)
	}
	s += fmt.Sprintf(", build %s has %s", e.Build, orNothing(e.Got))
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Line != "" {
		s += "; the call is at " + e.Line
	}
	return s
}

func orNothing(s string) string {
	if s == "" {
		return "nothing more"
	}
	return s
}
