package workflow

import (
	"errors"
	"time"
)

// Now returns the time by the queue's clock, in UTC. The journal remembers it under the name, so
// it is the same whenever the function runs again. See [Decide].
func Now(r *Run, name string) (time.Time, error) {
	t, err := Decide(r, name, r.x.engine.now)
	return t.UTC(), err
}

// Decide calls fn once and remembers what it returns, such as a random number or a new ID. Unlike a
// [Step] it needs no commit of its own: the next write for the run stores the value, and a call with
// an effect outside waits for that write. A crash before that write makes fn run again. So fn must
// not change anything, must not block, and cannot fail.
//
// The value is decoded from its stored form, like the result of a Step. The error is a [*StepError]
// that matches [ErrTooLarge] if the value cannot be stored. Any other error means that the run does
// not continue now: return it.
func Decide[T any](r *Run, name string, fn func() T) (T, error) {
	var out T
	err := r.s.decide(name, r.decodeInto(&out), func() ([]byte, error) { return r.x.encode("the value", fn()) })
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

func (s *scope) decide(name string, decode func([]byte) error, draw func() ([]byte, error)) error {
	c, err := s.begin(KindDecide, name, nil)
	if err != nil {
		return err
	}
	defer c.end()
	if c.known {
		return c.outcome(decode)
	}
	return c.draw(draw, decode)
}

// draw ends the call with a value that needs no commit of its own, and decodes it.
func (c *call) draw(draw func() ([]byte, error), decode func([]byte) error) error {
	x := c.x
	value, err := draw()
	if err == nil {
		err = c.fits(value, decode)
	}
	if errors.Is(err, ErrCodec) {
		return err
	}
	if err == nil {
		c.e.finish(value, x.engine.now())
	} else {
		x.fail(c.e, err)
	}
	x.later(c.e)
	if err != nil {
		return c.e.err()
	}
	return nil
}
