package queuetest

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// rates knows all starts under each rate. It decides by the definition of the algorithm, one unit of
// time after another, and checks what the rate promises on its own.
type rates struct {
	used   map[modelKey]time.Time   // until when the starts use up the rate of a queue, or of a key of it
	starts map[modelKey][]time.Time // when jobs started, in order
}

func newRates() rates {
	return rates{make(map[modelKey]time.Time), make(map[modelKey][]time.Time)}
}

// step is how long a start uses up a rate, rounded up.
func step(r pawl.Rate) time.Duration {
	n := time.Duration(r.Starts - max(1, r.Burst) + 1)
	d := r.Per / n
	if d*n < r.Per {
		d++
	}
	return d
}

// allow reports whether a job may start now.
func (r rates) allow(rate pawl.Rate, key modelKey, now time.Time) bool {
	tolerance := time.Duration(max(1, rate.Burst) - 1)
	return rate.Starts == 0 || !r.used[key].After(now.Add(tolerance*step(rate)))
}

// start counts the start of a job for the rates of its queue.
func (r rates) start(limits pawl.Limits, j *modelJob, now time.Time) error {
	if err := r.count(limits.Rate, modelKey{queue: j.Queue}, now); err != nil || j.Key == "" {
		return err
	}
	return r.count(limits.RatePerKey, modelKey{queue: j.Queue, key: j.Key}, now)
}

// count counts a start. It is an error if some period has more of them than the rate allows.
func (r rates) count(rate pawl.Rate, key modelKey, now time.Time) error {
	if rate.Starts == 0 {
		return nil
	}
	r.used[key] = later(r.used[key], now).Add(step(rate))
	all := append(r.starts[key], now)
	r.starts[key] = all
	if n := len(all) - 1 - rate.Starts; n >= 0 && all[n].Add(rate.Per).After(now) {
		return fmt.Errorf("start %d since %v of %+v, whose rate is %+v", rate.Starts+1, all[n], key, rate)
	}
	return nil
}
