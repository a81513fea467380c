package driver

import (
	"time"

	"github.com/gopawl/pawl"
)

// Pace is a [pawl.Rate] in the terms of the generic cell rate algorithm. A queue keeps one time for
// each rate, the theoretical arrival time (TAT): until when the starts so far use it up. The zero
// time stands for no start yet.
type Pace struct {
	step  time.Duration // how long a start uses the rate up; 0 for no rate
	burst time.Duration // how long the starts of a burst do
}

// PaceOf returns the pace of a valid rate.
func PaceOf(r pawl.Rate) Pace {
	if r.Starts == 0 {
		return Pace{}
	}
	burst := max(1, r.Burst)
	n := time.Duration(r.Starts - burst + 1)
	step := (r.Per + n - 1) / n // rounded up, so that no period has a start too many
	return Pace{step, step * time.Duration(burst)}
}

// Limits reports whether there is a rate.
func (p Pace) Limits() bool { return p.step > 0 }

// Left returns how many jobs may start now.
func (p Pace) Left(tat, now time.Time) int {
	return int(max(0, p.burst-max(0, tat.Sub(now))) / p.step)
}

// Most returns how many jobs may start at once, after a pause.
func (p Pace) Most() int { return int(p.burst / p.step) }

// Start returns the TAT after a start now.
func (p Pace) Start(tat, now time.Time) time.Time {
	if tat.Before(now) {
		tat = now
	}
	return tat.Add(p.step)
}

// When returns from when on n jobs may start, at most Most.
func (p Pace) When(tat time.Time, n int) time.Time {
	return tat.Add(time.Duration(n)*p.step - p.burst)
}

// Last returns the latest TAT that starts until now can have left. A later one means that the clock
// was set back. A queue then goes on from Last, as if a burst had just started: no more jobs start
// than the rate allows, and none waits until the clock is where it was.
func (p Pace) Last(now time.Time) time.Time { return now.Add(p.burst) }
