package driver

import (
	"fmt"

	"github.com/gopawl/pawl"
)

// Backlog sums up how many more jobs of each queue and key wait once a call has stored its jobs, for
// [pawl.Limits].MaxWaiting and MaxWaitingPerKey. Queues and keys without a bound are not counted.
type Backlog struct {
	limits func(queue string) pawl.Limits
	adds   map[backlogOf]int
	order  []backlogOf // in the order of their first Add
}

// NewBacklog returns a Backlog for the limits of queues.
func NewBacklog(limits func(queue string) pawl.Limits) Backlog { return Backlog{limits: limits} }

// backlogOf is a key of a queue, or the queue itself if the key is empty.
type backlogOf struct{ queue, key string }

func (of backlogOf) String() string {
	if of.key == "" {
		return fmt.Sprintf("queue %q", of.queue)
	}
	return fmt.Sprintf("key %q of queue %q", of.key, of.queue)
}

// IsWaiting reports whether a job in a state counts for the bounds of its queue.
func IsWaiting(s pawl.State) bool { return s == pawl.Ready || s == pawl.Delayed }

// Add counts a job that will wait, or, if n is -1, a job that the call takes from the waiting ones.
func (b *Backlog) Add(e *pawl.Envelope, n int) {
	l := b.limits(e.Queue)
	if l.MaxWaiting > 0 {
		b.add(backlogOf{queue: e.Queue}, n)
	}
	if l.MaxWaitingPerKey > 0 && e.Key != "" {
		b.add(backlogOf{e.Queue, e.Key}, n)
	}
}

func (b *Backlog) add(of backlogOf, n int) {
	if b.adds == nil {
		b.adds = make(map[backlogOf]int)
	}
	if _, ok := b.adds[of]; !ok {
		b.order = append(b.order, of)
	}
	b.adds[of] += n
}

// Each calls fn for each queue and for each of its keys, with how many more of its jobs wait. For the queue itself, the
// key is empty.
func (b *Backlog) Each(fn func(queue, key string, n int)) {
	for _, of := range b.order {
		fn(of.queue, of.key, b.adds[of])
	}
}

// Check returns [pawl.ErrQueueFull] if a bound would be exceeded. Waiting returns how many jobs of a queue wait
// now, or those of one of its keys if that is not empty.
func (b *Backlog) Check(waiting func(queue, key string) int) error {
	for _, of := range b.order {
		bound, name := b.limits(of.queue).MaxWaiting, "MaxWaiting"
		if of.key != "" {
			bound, name = b.limits(of.queue).MaxWaitingPerKey, "MaxWaitingPerKey"
		}
		adds := b.adds[of]
		if adds <= 0 {
			continue
		}
		if now := waiting(of.queue, of.key); now+adds > bound {
			return fmt.Errorf("%s: %w: %d of its jobs wait, the call adds %d, and %s is %d; wait until some have run, cancel some, or raise %s",
				of, pawl.ErrQueueFull, now, adds, name, bound, name)
		}
	}
	return nil
}
