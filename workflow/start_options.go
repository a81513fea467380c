package workflow

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// StartOption sets one property of a start: see [Delay], [At], [Deadline], [Key], [Attributes], and [Signal.WithStart].
// Unless they say otherwise, options apply only to a run that starts, and not to a run that already has the ID.
type StartOption func(*startOptions)

type startOptions struct {
	now        time.Time // by the clock of the store
	begin      time.Time // when the run begins; zero for immediately
	deadline   time.Time // when the run is cancelled; zero for never
	key        string
	attributes []attribute
	signal     *send
	err        error
}

// Delay makes the run begin after d. Until then it is [Sleeping], and signals to it are kept. If it is cancelled, it
// ends immediately. [Engine.Resume] makes it begin immediately. With 0 or less, there is no delay. If several Delay
// and At options are given, the last one counts.
func Delay(d time.Duration) StartOption {
	return func(o *startOptions) { o.begin = o.now.Add(d) }
}

// At makes the run begin at a time, as [Delay] does. A time in the past means immediately.
func At(t time.Time) StartOption {
	return func(o *startOptions) { o.begin = t }
}

// Deadline cancels the run when d has passed since its start, as [Engine.Cancel] does: the run undoes its
// steps, and ends as [Cancelled]. Its [RunError] matches [ErrDeadline]. The deadline includes the time of
// a [Delay], of pauses, and before restarts. The deadline does not limit the undo, and has no effect on a
// dead run before it is resumed. Children are cancelled with the run; a fork has no deadline. The start
// returns [pawl.ErrInvalid] if d is not above 0, or if the run begins only after the deadline.
func Deadline(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.deadline = o.now.Add(d)
		if d <= 0 && o.err == nil {
			o.err = &pawl.InvalidError{Field: "deadline", Reason: fmt.Sprintf("%v is not a time after the start", d)}
		}
	}
}

// Key says what the run works on, such as "tenant/42". [MaxOpenPerKey] limits the open runs of a flow with the same
// key. A child has no key, and a fork has the key of the other run. The job of the run has no key, see [pawl.Key]. The
// start returns [pawl.ErrInvalid] if the key is empty, has a NUL, or has more than [pawl.MaxKeyBytes] bytes.
func Key(key string) StartOption {
	return func(o *startOptions) {
		if o.key = key; o.err == nil {
			o.err = validKey(key)
		}
	}
}

// startOptions collects the options of a start.
func (e *Engine) startOptions(opts []StartOption) (o startOptions, err error) {
	o.now = e.now()
	for _, opt := range opts {
		opt(&o)
	}
	if s := o.signal; s != nil && o.err == nil {
		s.hub = e.hub
		s.payload, o.err = e.toStored(s.payload)
	}
	if s := o.signal; s != nil && o.err == nil {
		o.err = CheckSignal(s.name, s.payload, s.dedup)
	}
	if o.err == nil && !o.deadline.IsZero() && !o.begin.Before(o.deadline) {
		o.err = &pawl.InvalidError{Field: "deadline", Reason: fmt.Sprintf("the run begins at %v, and its deadline is %v", o.begin, o.deadline)}
	}
	return o, o.err
}

// WithStart sends the signal with the start, in one commit. If no run has the ID, a run starts and has the signal
// already. If a run has the ID, it receives the signal, whatever its input is. If that run has ended, and has not
// received a signal with the key, the start returns [ErrNotRunning]. For the key and other errors see [Signal.Send]. A
// start has at most one signal.
func (s *Signal[T]) WithStart(value T, key string) StartOption {
	return func(o *startOptions) {
		err := s.err
		var payload []byte
		if err == nil {
			payload, err = encode("the signal", value)
		}
		if err == nil && o.signal != nil {
			err = &pawl.InvalidError{Field: "start", Reason: "it has two signals; send the second one after it"}
		}
		if o.err == nil {
			o.err = err
		}
		o.signal = &send{name: s.name, payload: payload, dedup: key}
	}
}

// apply applies the options to a run that starts, and to its job.
func (o *startOptions) apply(s *start) {
	s.signal, s.row.Deadline = o.signal, unixNano(o.deadline)
	if o.begin.After(o.now) {
		s.row.Status, s.row.Due, s.job.NotBefore = Sleeping, unixNano(o.begin), o.begin
	}
}
