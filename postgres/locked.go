package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// A call may have to wait for the lock of another session: of a transaction of the app that has taken a
// unique key or acked a job, or of a machine that has lost power. Other calls must not wait for it. So
// the transaction gives up soon, and its calls are split until the waiting call is alone. That call is
// deferred: the scheduler tries it again by itself, with pauses in which it carries out all other calls.

const (
	leastBrief = 10 * time.Millisecond  // how long the first retry of a deferred call waits for a lock
	mostBrief  = 100 * time.Millisecond // the same, after several tries
	pauses     = 4                      // the pause for other calls, as a multiple of that wait
)

// lockWait returns how long a group waits for a lock. Most locks belong to commits in progress.
func lockWait(lease time.Duration) time.Duration { return min(lease/16, time.Second/2) }

// part carries out each half of some calls that include a call that waits for a lock. It waits briefly for each
// lock. Once parting has taken long, it defers all calls that may wait.
func (q *Queue) part(calls []*call) {
	if q.brief == 0 {
		q.brief, q.partUntil = leastBrief, time.Now().Add(lockWait(q.opts.Lease))
		defer func() { q.brief = 0 }()
	}
	half := len(calls) / 2
	for _, some := range [][]*call{calls[:half:half], calls[half:]} {
		if some = q.holdBack(some, time.Now().After(q.partUntil)); len(some) > 0 {
			q.run(some)
		}
	}
}

// postponeLocked defers a call that waited for a lock.
func (q *Queue) postponeLocked(c *call) {
	c.tries++
	c.names = q.namesOf(c)
	q.deferred = append(q.deferred, c)
	q.nextTry = time.Now().Add(pauses * briefWait(c))
}

// briefWait returns how long the next try of a deferred call waits for a lock.
func briefWait(c *call) time.Duration { return min(leastBrief<<min(c.tries, 4), mostBrief) }

// holdBack defers the calls that name something that a deferred call also names, or, if all is set, each call that
// names anything. It returns the other calls.
func (q *Queue) holdBack(calls []*call, all bool) []*call {
	if len(q.deferred) == 0 && !all {
		return calls
	}
	awaited := make(map[string]bool)
	for _, c := range q.deferred {
		for _, name := range c.names {
			awaited[name] = true
		}
	}
	return slices.DeleteFunc(calls, func(c *call) bool {
		names := q.namesOf(c)
		if len(names) == 0 || !all && !slices.ContainsFunc(names, func(name string) bool { return awaited[name] }) {
			return false
		}
		c.names = names
		q.deferred = append(q.deferred, c)
		return true
	})
}

// runDeferred tries one of the deferred calls again. If that call no longer has to wait, runDeferred also tries
// the calls that name the same things.
func (q *Queue) runDeferred() {
	q.deferred = slices.DeleteFunc(q.deferred, func(c *call) bool {
		if len(core.Withdraw([]*call{c})) == 0 {
			return true
		}
		late := !time.Now().Before(c.until)
		if late {
			c.Answer(fmt.Errorf("%w: another session holds a lock that the call needs", ErrUnavailable))
		}
		return late
	})
	if len(q.deferred) == 0 || time.Now().Before(q.nextTry) {
		return
	}
	first := q.deferred[0]
	q.deferred = q.deferred[1:]
	tries := first.tries
	q.brief, q.partUntil = briefWait(first), time.Now().Add(lockWait(q.opts.Lease))
	q.run([]*call{first})
	if first.tries == tries {
		var followers []*call
		q.deferred = slices.DeleteFunc(q.deferred, func(c *call) bool {
			follows := slices.ContainsFunc(c.names, func(name string) bool { return slices.Contains(first.names, name) })
			if follows {
				followers = append(followers, c)
			}
			return follows
		})
		if len(followers) > 0 {
			q.run(followers)
		}
	}
	q.brief = 0
}

// namesOf returns what a call may wait for: jobs, unique keys, groups, bounds, rows of mutations, and the right to
// run alone.
func (q *Queue) namesOf(c *call) (names []string) {
	if op, is := c.operation.(*enqueue); is {
		names = q.boundsNamed(op)
	}
	var n needs
	c.needs(&n)
	for _, id := range n.ids {
		names = append(names, "job "+string(id[:]))
	}
	for _, key := range n.keys {
		names = append(names, "key "+string(key))
	}
	for _, group := range n.in {
		names = append(names, "group "+group)
	}
	for _, declared := range n.rows {
		for _, list := range [...][]driver.RowKey{declared.Owners, declared.Rows} {
			for _, r := range list {
				names = append(names, "row "+r.Table.String()+"\x00"+string(r.Key))
			}
		}
	}
	if n.alone {
		names = append(names, "alone")
	}
	return names
}
