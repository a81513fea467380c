package driver

import (
	"context"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/lease"
)

// CheckRequest returns r with its defaults filled in, its kinds sorted, and nothing shared with
// the caller, or a [*pawl.InvalidError].
func CheckRequest(r pawl.Request) (pawl.Request, error) {
	if r.Max < 1 {
		return r, invalid("Max", "%d jobs were asked for, it must be 1 or more", r.Max)
	}
	if r.Ahead < 0 {
		return r, invalid("Ahead", "%d jobs cannot wait", r.Ahead)
	}
	if !(r.RetryShare >= 0 && r.RetryShare <= 1) {
		return r, invalid("RetryShare", "%v is not between 0 and 1", r.RetryShare)
	}
	if r.Kinds != nil && len(r.Kinds) == 0 {
		return r, invalid("Kinds", "names no kind; leave it nil for every kind")
	}
	r.Queues, r.Weights = slices.Clone(r.Queues), maps.Clone(r.Weights)
	r.Kinds = slices.Clone(r.Kinds)
	slices.Sort(r.Kinds)
	r.Kinds = slices.Compact(r.Kinds)
	for _, kind := range r.Kinds {
		if err := CheckKind(kind); err != nil {
			return r, err
		}
	}
	if len(r.Queues) == 0 {
		r.Queues = []string{pawl.DefaultQueue}
	}
	for _, name := range r.Queues {
		if err := CheckQueue(name); err != nil {
			return r, err
		}
	}
	for name, weight := range r.Weights {
		if weight < 1 || weight > pawl.MaxWeight {
			return r, invalid("weight", "%d of queue %q is not between 1 and %d", weight, name, pawl.MaxWeight)
		}
	}
	return r, nil
}

// Wants reports whether a request asks for jobs of a kind. [CheckRequest] made the request.
func Wants(r *pawl.Request, kind string) bool {
	if r.Kinds == nil {
		return true
	}
	_, ok := slices.BinarySearch(r.Kinds, kind)
	return ok
}

// Weight returns how many turns a queue has while a queue of weight 1 has one.
func Weight(r *pawl.Request, queue string) int { return max(r.Weights[queue], 1) }

// Cancellation notifies the holder of a lease, once, that the job is cancelled. A queue makes one
// for each lease, in the field Cancelled of [pawl.Lease]. The zero value has not fired; a nil one
// never fires. Its methods may be called from any goroutine:
//
//   - Fire() makes it fire, and calls the functions that were given to OnFire. Only the first call
//     does anything. The queue calls it once the cancel is durable.
//   - OnFire(fn func()) calls fn when it fires, at once if it has. Fn is short, calls no queue and
//     does not panic: it runs where the queue does its work.
//   - Fired() bool reports whether it has fired.
type Cancellation = lease.Cancellation

// RunContext returns a context for the handler that runs the job of l, a lease of q. [pawl.Kind.Enqueue]
// reads from it which job that is; see [pawl.ErrOwnJob]. Notes collects the notes of the attempt. Workers
// call RunContext.
func RunContext(ctx context.Context, q pawl.Queue, l *pawl.Lease, notes *Notes) context.Context {
	return root.RunContext(ctx, q, l, notes.collected())
}

// CheckPolicy returns p in the form in which a worker uses it, or a [*pawl.InvalidError]: a
// pointer to a [pawl.Strategy] becomes the strategy, and a strategy with an error is refused. Nil
// stays nil.
func CheckPolicy(p pawl.Policy) (pawl.Policy, error) { return root.CheckPolicy(p) }
