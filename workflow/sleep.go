package workflow

import (
	"fmt"
	"math"
	"time"
)

// Forever is a wait, or a retention, without a time limit.
const Forever = time.Duration(math.MaxInt64)

// Sleep waits for d. It survives crashes and restarts, and holds no slot of a worker: the run is
// suspended and its job delayed. Time counts even while no process has
// the file.
func Sleep(r *Run, name string, d time.Duration) error {
	if d >= Forever {
		return fmt.Errorf("sleep %q: it would never end; wait for a signal with Forever", name)
	}
	return r.s.sleep(name, func() int64 { return r.x.after(d) }, d)
}

// SleepUntil waits until a time by the queue's clock. It returns immediately if the time has
// passed.
func SleepUntil(r *Run, name string, t time.Time) error {
	return r.s.sleep(name, func() int64 { return max(1, unixNano(t)) }, max(0, t.Sub(r.x.engine.now())))
}

func (s *scope) sleep(name string, due func() int64, d time.Duration) error {
	c, err := s.begin(KindSleep, name, nil)
	if err != nil {
		return err
	}
	defer c.end()
	if c.known {
		return nil
	}
	if c.e.Due == 0 {
		c.e.Due = due()
		if err := c.pending(d); err != nil {
			return err
		}
	}
	if err := c.awaitDue(); err != nil {
		return err
	}
	c.e.finish(nil, s.x.engine.now())
	s.x.later(c.e) // after a crash its time is still over
	return nil
}
