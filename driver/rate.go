package driver

import (
	"time"

	"github.com/gopawl/pawl"
)

// Pace is a [pawl.Rate] in the terms of the generic cell rate algorithm. A queue keeps one time for
// each rate, the theoretical arrival time (TAT): the starts so far use up the rate until then. The
// zero time means that no job has started.
type Pace struct {
	step  time.Duration // how long a start of cost 1 uses the rate up; 0 for no rate
	burst time.Duration // how long the starts of a burst use it up
	cost  int           // the highest cost
}

// PaceOf returns the pace of a valid rate.
func PaceOf(r pawl.Rate) Pace {
	if r.Starts == 0 {
		return Pace{}
	}
	burst, cost := max(1, r.Burst), max(1, r.MaxCost)
	n := time.Duration(r.Starts - burst - cost + 2)
	step := (r.Per + n - 1) / n // rounded up, so that no period has a start too many
	return Pace{step, step * time.Duration(burst), cost}
}

// Limits reports whether there is a rate.
func (p Pace) Limits() bool { return p.step > 0 }

// Units returns how many starts the start of a job with a cost counts as. A queue refuses a job of a higher
// cost than its rate takes. Such a job can still be in a queue whose rate was declared later. It counts as
// a job of the highest cost.
func (p Pace) Units(cost int) int { return min(max(1, cost), p.cost) }

// Left returns how many jobs of cost 1 may start now. If it is not 0, one job of any cost may.
func (p Pace) Left(tat, now time.Time) int {
	return int(max(0, p.burst-max(0, tat.Sub(now))) / p.step)
}

// Most returns how many jobs of cost 1 may start at once, after a pause.
func (p Pace) Most() int { return int(p.burst / p.step) }

// Start returns the TAT after a start of a job with a cost now.
func (p Pace) Start(tat, now time.Time, cost int) time.Time {
	if tat.Before(now) {
		tat = now
	}
	return tat.Add(time.Duration(p.Units(cost)) * p.step)
}

// When returns the time at which n jobs of cost 1 may start. N is at most Most.
func (p Pace) When(tat time.Time, n int) time.Time {
	return tat.Add(time.Duration(n)*p.step - p.burst)
}

// Last returns the latest TAT that is possible after starts until now. A later one means that the clock
// was set back. A queue then continues from Last, as if a burst had just started whose last job had the
// highest cost: no more jobs start than the rate allows, and none waits until the clock is where it was.
func (p Pace) Last(now time.Time) time.Time {
	return now.Add(p.burst + time.Duration(p.cost-1)*p.step)
}

// CheckRested checks the names of a queue and of a key for a call that ends a rest. Its error is a
// [*pawl.InvalidError].
func CheckRested(queue, key string) error {
	if err := CheckQueue(queue); err != nil {
		return err
	}
	if key == "" || len(key) > pawl.MaxKeyBytes {
		return invalid("key", "%d bytes are not between 1 and %d", len(key), pawl.MaxKeyBytes)
	}
	return nil
}

// CheckCost refuses a job whose cost is more than a rate of its queue takes. Its error is a
// [*pawl.InvalidError].
func CheckCost(l pawl.Limits, e *pawl.Envelope) error {
	check := func(name string, r pawl.Rate) error {
		if r.Starts == 0 || e.Cost <= max(1, r.MaxCost) {
			return nil
		}
		return invalid("cost", "%d is more than the MaxCost %d of the %s of queue %q; raise that, or enqueue smaller jobs", e.Cost, max(1, r.MaxCost), name, e.Queue)
	}
	err := check("Rate", l.Rate)
	if err == nil && e.Key != "" {
		err = check("RatePerKey", l.RatePerKey)
	}
	return err
}
