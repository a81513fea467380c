package workflow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/worker"
)

// StepOption sets one property of a step.
type StepOption func(*stepOptions)

type stepOptions struct {
	retries int
	policy  pawl.Policy
	timeout time.Duration
	once    bool
	key     []byte
	err     error
}

// MaxRetries sets how often a failed step is retried. The default is [pawl.DefaultMaxRetries].
func MaxRetries(n int) StepOption {
	return func(o *stepOptions) {
		if o.retries = n; n < 0 || n > pawl.MaxMaxRetries {
			o.err = &pawl.InvalidError{Field: "max retries", Reason: fmt.Sprintf("%d is not between 0 and %d", n, pawl.MaxMaxRetries)}
		}
	}
}

// Backoff sets how long a failed step waits. The default is [pawl.DefaultStrategy]. The waits
// are durable and hold no worker.
func Backoff(p pawl.Policy) StepOption {
	return func(o *stepOptions) {
		policy, err := driver.CheckPolicy(p)
		if err != nil {
			o.err = err
		} else if policy != nil {
			o.policy = policy
		}
	}
}

// Timeout limits each attempt of a step. The context of the attempt ends at the timeout.
func Timeout(d time.Duration) StepOption { return func(o *stepOptions) { o.timeout = d } }

// AtMostOnce makes a step begin at most once, whatever happens: its start is made durable
// first. If a crash interrupts the step, it fails with [ErrInterrupted]. A failed step is not
// retried.
func AtMostOnce() StepOption { return func(o *stepOptions) { o.once = true } }

// Fingerprint makes the journal remember the arguments of a step, and blocks the run if the
// code later calls the step with other arguments. Zero fields and map entries do not count, so
// a deploy may add a field.
func Fingerprint(x any) StepOption {
	return func(o *stepOptions) {
		b, err := driver.EncodePayload(x)
		if err != nil {
			o.err = err
			return
		}
		o.key = fingerprint(b)
	}
}

var defaultPolicy = pawl.DefaultStrategy()

func optionsOf(opts []StepOption) (o stepOptions, err error) {
	o = stepOptions{retries: pawl.DefaultMaxRetries, policy: defaultPolicy}
	for _, opt := range opts {
		opt(&o)
	}
	if o.once {
		o.retries = 0
	}
	return o, o.err
}

// StepInfo describes the current attempt of a step.
type StepInfo struct {
	Run     pawl.ID
	Flow    string
	ID      string // the run's ID
	Step    string // scope, name and occurrence
	Kind    EntryKind
	Attempt int    // 1-based
	Key     string // key of the effect; see [Run.Key]
}

// StepFunc runs one attempt of a step and returns its result.
type StepFunc func(ctx context.Context, s StepInfo) (any, error)

// Middleware wraps a StepFunc to do something before or after it, or to replace it. Its result
// must be decodable into the step's type.
type Middleware func(next StepFunc) StepFunc

// Step runs fn until it succeeds once, and returns its result. Before the result is durable, a
// crash makes fn run again: its outside effects happen at least once. [Run.Key] identifies them
// for systems that can detect repetitions.
//
// The next write of the run makes the result durable, or after 5 ms a separate write does. No other effect of the run
// takes place before that: no other step begins, no signal is taken, and nothing is published. The result of a step
// that begins [AtMostOnce] is durable when Step returns.
//
// The result is always decoded from its stored form, even when fn has just run. Failures are retried
// as the options say. [pawl.Permanent] and [pawl.RetryAfter] work as in a handler. The final failure
// is a [*StepError]. Any other error means that the run does not continue now: return it.
//
// A result is encoded like the arguments of a job, see [pawl.Define]. So if the code later renames a field, results
// in journals lack the new field.
//
// The context ends when the run is cancelled, when the worker stops, and at the timeout. An
// interrupted attempt is not recorded.
func Step[T any](r *Run, name string, fn func(ctx context.Context) (T, error), opts ...StepOption) (T, error) {
	var out T
	err := r.s.step(KindStep, name, opts, r.decodeInto(&out), func(ctx context.Context, c *call, info StepInfo) ([]byte, error) {
		return c.x.invoke(ctx, info, func(ctx context.Context, _ StepInfo) (any, error) { return fn(ctx) })
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

// attemptFunc runs one attempt and returns its encoded result. It returns errSaved if it has
// written the end of the entry itself.
type attemptFunc func(ctx context.Context, c *call, info StepInfo) ([]byte, error)

// errSaved says that the entry is durable already.
var errSaved = errors.New("saved")

// step is a call that runs something, with retries.
func (s *scope) step(kind EntryKind, name string, opts []StepOption, decode func([]byte) error, attempt attemptFunc) error {
	o, err := optionsOf(opts)
	if err != nil {
		return fmt.Errorf("step %q: %w", name, err)
	}
	c, err := s.begin(kind, name, o.key)
	if err != nil {
		return err
	}
	defer c.end()
	if c.known {
		return c.outcome(decode)
	}
	if err := c.try(&o, decode, attempt); err != nil {
		return err
	}
	if c.e.State == EntryFailed {
		return c.e.err()
	}
	return nil // decode has stored the result
}

// try runs attempts until the entry has ended. Decode has read a stored result.
func (c *call) try(o *stepOptions, decode func([]byte) error, attempt attemptFunc) error {
	x, e := c.x, c.e
	for {
		if err := c.awaitDue(); err != nil {
			return err
		}
		if o.once && e.Begun != 0 {
			e.Attempts++
			x.fail(e, ErrInterrupted)
			return x.save(e)
		}
		if err := c.ready(o); err != nil {
			return err
		}
		result, err := c.attempt(o, attempt)
		if errors.Is(err, errSaved) {
			return nil
		}
		if err != nil {
			if err := c.interrupted(); err != nil {
				return err
			}
		}
		e.Attempts++
		if err == nil {
			if err = c.fits(result, decode); err == nil {
				e.finish(result, x.engine.now())
				return c.hold(o)
			}
			if errors.Is(err, ErrCodec) {
				return err
			}
			err = pawl.Permanent(err) // the effect took place
		}
		delay, again := o.retry(e.Attempts, err)
		if !again {
			x.fail(e, err)
			return c.hold(o)
		}
		e.Error, e.Chain, e.Due = textOf(err), nil, x.after(delay)
		if err := c.pending(delay); err != nil {
			return err
		}
	}
}

// ready makes durable what must be durable before an attempt: the calls before it, and the start of a step that begins
// at most once.
func (c *call) ready(o *stepOptions) error {
	if !o.once {
		return c.x.saveResults()
	}
	c.e.Begun = c.x.engine.now().UnixNano()
	return c.x.save(c.e)
}

// saveResults runs before a call with an outside effect. It writes the calls that have ended and are not
// durable: steps and decided values, on which the effect may depend, and sleeps. So if the run is cancelled
// later, it is past the sleep even after a crash, and runs the undo steps that were added after the sleep.
func (x *execution) saveResults() error {
	x.mu.Lock()
	unsaved := x.backlog.results > x.backlog.base
	x.mu.Unlock()
	if !unsaved {
		return nil
	}
	return x.save()
}

// pending leaves the entry to the suspension, or writes it now if the run is not about to be suspended.
func (c *call) pending(wait time.Duration) error {
	c.x.later(c.e)
	return c.written(wait)
}

// written makes sure that the backlog, which has the entry, is written: by the suspension, or now if the run is not
// about to be suspended.
func (c *call) written(wait time.Duration) error {
	x := c.x
	x.mu.Lock()
	suspends := x.active == 1 && wait >= 2*leastSuspension
	unsaved := x.backlog.restless()
	x.mu.Unlock()
	if suspends || !unsaved {
		return nil
	}
	return x.save()
}

// awaitDue waits until a pending entry may continue.
func (c *call) awaitDue() error {
	for c.e.Due != 0 {
		due := time.Unix(0, c.e.Due)
		if !due.After(c.x.engine.now()) {
			break
		}
		passed, err := c.idle(waitCondition{due: due, note: c.failure()}, nil)
		if err != nil {
			return err
		}
		if err := c.refused(); err != nil {
			return err
		}
		if passed {
			break
		}
	}
	c.e.Due = 0
	return nil
}

// failure returns the error of a failed step that will be retried.
func (c *call) failure() string {
	if c.e.Error == "" {
		return ""
	}
	return c.e.err().Error()
}

// refused returns why a call in progress does not continue, or nil if it does.
func (c *call) refused() error {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	return c.refusedLocked()
}

func (c *call) refusedLocked() error {
	if c.x.stopped != nil {
		return c.x.stopped
	}
	return c.x.mayGoOn(c.scope, c.e.Kind)
}

// interrupted reports whether an attempt failed because the run does not continue.
func (c *call) interrupted() error {
	if c.ctx.Err() == nil && c.x.ctx.Err() == nil {
		return nil
	}
	if cause := context.Cause(c.x.ctx); cause != nil {
		return c.x.stop(cause)
	}
	return c.refused()
}

// fits requires that a result can be stored and read back.
func (c *call) fits(result []byte, decode func([]byte) error) error {
	x := c.x
	if len(result) > MaxValue {
		return fmt.Errorf("the result has %d bytes, at most %d are stored: %w; store it elsewhere and return a reference", len(result), MaxValue, ErrTooLarge)
	}
	if err := decode(result); err != nil {
		return fmt.Errorf("the result cannot be read back: %w", err)
	}
	x.mu.Lock()
	x.bytes += int64(len(result))
	full := x.bytes > MaxJournal
	if full {
		x.bytes -= int64(len(result))
	}
	x.mu.Unlock()
	if full {
		return fmt.Errorf("the journal has more than %d bytes of results and errors: %w; store them elsewhere, or begin anew with Restart", MaxJournal, ErrTooLarge)
	}
	return nil
}

// fail ends an entry with an error. If the journal is full, it stores only the beginning of the
// error.
func (x *execution) fail(e *entry, err error) {
	e.fail(err, x.engine.now())
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bytes+e.weight() > MaxJournal {
		e.fail(fmt.Errorf("the journal has more than %d bytes of results and errors: %w; begin anew with Restart; what failed: %s",
			MaxJournal, ErrTooLarge, ellipsis.Truncate(err.Error(), leastErrorText)), x.engine.now())
	}
	x.bytes += e.weight()
}

// retry reports whether and when a failed step is retried.
func (o *stepOptions) retry(attempts int, err error) (delay time.Duration, again bool) {
	if pawl.IsPermanent(err) || attempts > o.retries {
		return 0, false
	}
	if delay, ok := pawl.RetryDelay(err); ok {
		return delay, true
	}
	return o.policy.Delay(pawl.Retry{Completed: attempts, Attempt: attempts + 1, Err: err, Random: rand.Float64()})
}

// attempt runs one attempt. It returns a panic as an error.
func (c *call) attempt(o *stepOptions, fn attemptFunc) (result []byte, err error) {
	ctx := c.ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, worker.ErrTimeout)
		defer cancel()
	}
	x := c.x
	info := StepInfo{Run: x.run, Flow: x.row.Flow, ID: x.row.ID, Step: stepName(c.name, c.e.Name, c.e.Occurrence),
		Kind: c.e.Kind, Attempt: c.e.Attempts + 1, Key: x.keyOf(c.e)}
	c.attempting(true)
	defer c.attempting(false)
	defer x.working(info.Step)()
	defer func() {
		if p := recover(); p != nil {
			failed := panicked(p)
			err = &failed
		}
	}()
	return fn(ctx, c, info)
}

// invoke calls the function of a step, wrapped in the middleware.
func (x *execution) invoke(ctx context.Context, info StepInfo, fn StepFunc) ([]byte, error) {
	around := x.engine.opts.Middleware
	for i := len(around) - 1; i >= 0; i-- {
		fn = around[i](fn)
	}
	v, err := fn(ctx, info)
	if err != nil {
		return nil, err
	}
	b, err := driver.EncodePayload(v)
	if err != nil {
		return nil, pawl.Permanent(fmt.Errorf("the result cannot be stored: %w; return plain data", err))
	}
	b, err = x.engine.toStored(b)
	return b, x.codecStops(err)
}
