package queuetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// rates knows all starts under each rate. It decides by the definition of the algorithm, one unit of
// time after another, and checks what the rate promises on its own.
type rates struct {
	used   map[modelKey]time.Time   // until when the starts use up the rate of a queue, or of a key of it
	starts map[modelKey][]time.Time // when jobs started, in order, each as often as its cost says
}

func newRates() rates {
	return rates{make(map[modelKey]time.Time), make(map[modelKey][]time.Time)}
}

// step is how long a start of cost 1 uses up a rate, rounded up.
func step(r pawl.Rate) time.Duration {
	n := time.Duration(r.Starts - max(1, r.Burst) - max(1, r.MaxCost) + 2)
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
	cost := max(1, j.Cost)
	if err := r.count(limits.Rate, modelKey{queue: j.Queue}, now, cost); err != nil || j.Key == "" {
		return err
	}
	return r.count(limits.RatePerKey, modelKey{queue: j.Queue, key: j.Key}, now, cost)
}

// count counts a start of a job with a cost. It is an error if some period has more starts than the rate
// allows.
func (r rates) count(rate pawl.Rate, key modelKey, now time.Time, cost int) error {
	if rate.Starts == 0 {
		return nil
	}
	r.used[key] = later(r.used[key], now).Add(time.Duration(cost) * step(rate))
	all := append(r.starts[key], slices.Repeat([]time.Time{now}, cost)...)
	r.starts[key] = all
	if n := len(all) - 1 - rate.Starts; n >= 0 && all[n].Add(rate.Per).After(now) {
		return fmt.Errorf("start %d since %v of %+v, whose rate is %+v", rate.Starts+1, all[n], key, rate)
	}
	return nil
}
