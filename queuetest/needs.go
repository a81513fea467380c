package queuetest

import "github.com/gopawl/pawl"

// needs is what Config must say for a case to apply. Run leaves out the others.
type needs uint16

const (
	persists   needs = 1 << iota
	alone            // and Persists
	together         // Persists, and not Alone
	counting         // Counts
	emitting         // Events
	mutating         // the queue is a Mutator
	several          // Another
	batches          // no MaxBatch
	ordering         // not Reduced.Unordered
	suspecting       // not Reduced.NoSuspects
	knowingIDs       // not Reduced.AnyID
	clocked          // not Reduced.OwnClock
	shortNames       // Reduced.MaxName
	looking          // Reduced.Waits
)

// meets returns what the configuration and the queue offer to cases.
func (c *Config) meets(q pawl.Queue) (n needs) {
	if c.Persists {
		n |= persists
		if c.Alone {
			n |= alone
		} else {
			n |= together
		}
	}
	if c.Counts != nil {
		n |= counting
	}
	if c.Events {
		n |= emitting
	}
	if c.Another != nil {
		n |= several
	}
	if _, ok := q.(Mutator); ok {
		n |= mutating
	}
	if c.MaxBatch == 0 {
		n |= batches
	}
	return n | c.Reduced.meets()
}

// meets returns what the queue offers to cases.
func (r Reduced) meets() (n needs) {
	for _, rule := range []struct {
		holds bool
		needs needs
	}{
		{!r.Unordered, ordering}, {!r.NoSuspects, suspecting}, {!r.AnyID, knowingIDs}, {!r.OwnClock, clocked}, {r.MaxName > 0, shortNames},
		{r.Waits > 0, looking},
	} {
		if rule.holds {
			n |= rule.needs
		}
	}
	return n
}
