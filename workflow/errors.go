package workflow

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gopawl/pawl"
)

// One sentinel for each decision that a caller makes; match with errors.Is.
var (
	// ErrSuspended is what every call of a run returns once the run waits. The function
	// returns it, or anything: what it returns then is not looked at. Deferred functions run
	// now, and again at each wake; in them too every call returns ErrSuspended. The goroutine of a
	// function that does not return, but makes more than [MaxEntries] calls that are refused, is
	// ended, as if it had returned.
	ErrSuspended = errors.New("the run waits; return from its function")

	// ErrCancelled is what calls return once the run is to be cancelled: the one that is under
	// way or comes next, and all after it.
	ErrCancelled = errors.New("the run was cancelled")

	// ErrTerminated says that an operator ended the run at once.
	ErrTerminated = errors.New("the run was terminated")

	// ErrTimeout says that no signal came in time.
	ErrTimeout = errors.New("no signal came in time")

	// ErrInterrupted says that a step which runs at most once was under way when the process
	// died, so nobody knows whether it took effect.
	ErrInterrupted = errors.New("the step was interrupted, and runs at most once")

	// ErrNested says that a call was made within another of its scope: inside the function of
	// a step, or from a goroutine that [Go] did not start.
	ErrNested = errors.New("a call was made inside another")

	// ErrAbandoned is what the calls of a branch return once a race was won by another.
	ErrAbandoned = errors.New("another branch won the race")

	// ErrNotFound is the [pawl.ErrNotFound] of a run: there is no such run.
	ErrNotFound error = notFound{}

	// ErrConflict says that the ID is taken: by a run with another input, for who starts one.
	ErrConflict = errors.New("the ID is taken by another run")

	// ErrNotRunning says that the run has ended, so what was asked for comes too late.
	ErrNotRunning = errors.New("the run has ended")

	// ErrUndeclared says that a flow does not wait for a signal; see [Receives].
	ErrUndeclared = errors.New("the flow does not declare this signal")

	// ErrTooMany says that a limit of this package is reached.
	ErrTooMany = errors.New("a limit of workflows is reached")

	// ErrTooLarge says that a value is larger than this package stores.
	ErrTooLarge = errors.New("value is too large")
)

type notFound struct{}

func (notFound) Error() string { return "no such run" }

func (notFound) Unwrap() error { return pawl.ErrNotFound }

// errorText is an error of a chain, as far as it is remembered.
type errorText struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Type string
	Text string
}

// StepError is the error with which a step, a wait or a child ended. It comes from the
// journal on the first run too, so that a run which goes on after a crash sees the same.
//
// Of the error that the step returned, the texts and the types remain, not the values:
// errors.Is finds an error in it that has the same type and the same text, which for
// sentinels is what is wanted. errors.As finds a StepError alone.
type StepError struct {
	Step     string // scope, name and occurrence
	Text     string // of the error
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

func inChain(chain []errorText, target error) bool {
	if target == nil {
		return false
	}
	for _, t := range chain {
		if t.Type == typeOf(target) && t.Text == pawl.Clip(target.Error(), maxErrorText) {
			return true
		}
	}
	return false
}

func typeOf(err error) string { return reflect.TypeOf(err).String() }

func textOf(err error) string {
	text := err.Error()
	if stack := pawl.FailureOf(err).Stack; stack != "" {
		text += "\n\n" + stack
	}
	return pawl.Clip(text, maxErrorText)
}

// chainOf is what is remembered of an error and of those that it wraps.
func chainOf(err error) (chain []errorText) {
	var walk func(error)
	walk = func(err error) {
		if err == nil || len(chain) == maxChain {
			return
		}
		var known *StepError
		if s, ok := err.(*StepError); ok {
			known = s
		}
		chain = append(chain, errorText{Type: typeOf(err), Text: pawl.Clip(err.Error(), maxErrorText)})
		if known != nil { // what it wraps is known by its texts
			chain = append(chain, known.chain[:min(len(known.chain), maxChain-len(chain))]...)
			return
		}
		switch err := err.(type) {
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

// RunError is the error with which a run ended, as a caller of [Handle.Result] gets it. It
// is to errors.Is as a [StepError] is, and it matches [ErrCancelled] or [ErrTerminated] when
// that is how it ended.
type RunError struct {
	Flow, ID string
	Run      pawl.ID
	Status   Status // Failed, Cancelled or Terminated
	Text     string

	chain []errorText
}

func (e *RunError) Error() string {
	return fmt.Sprintf("workflow %s %q %s: %s", e.Flow, e.ID, e.Status, e.Text)
}

// Is reports how the run ended, and whether it failed with an error of the type and text of
// target.
func (e *RunError) Is(target error) bool {
	switch target {
	case ErrCancelled:
		return e.Status == Cancelled || inChain(e.chain, target)
	case ErrTerminated:
		return e.Status == Terminated
	}
	return inChain(e.chain, target)
}

// DeterminismError says that the function made other calls than its journal has. The run is
// blocked: nothing is lost and no attempt counted, and it goes on when another build
// opens the file, or when it is resumed.
type DeterminismError struct {
	Flow, ID string
	Want     string // what the journal has: kind and step; "" when it has no more
	Got      string // what the code did
	Seq      uint32 // of the entry in the journal; 0 when there is none
	Build    string // that made the call
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
	return s
}

func orNothing(s string) string {
	if s == "" {
		return "nothing more"
	}
	return s
}
