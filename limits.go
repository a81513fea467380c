package pawl

// Limits bound how many jobs of a queue run at a time, over all workers and processes. A zero
// field sets no limit. An engine that has limits takes them in its options, by the name of the
// queue, and declares [LimitKeys].
//
// A leased job counts as running, so jobs that a worker fetched ahead count too. Delayed jobs do
// not count: a job that waits for its retry, or that snoozes, leaves its place to others.
//
// A job that a limit keeps from running is blocked. Its State is still [Ready], and it keeps its
// place in the order of its queue. Limits change no other order.
type Limits struct {
	Running       int // jobs of the queue at a time
	RunningPerKey int // jobs of the queue with the same [Key] at a time; it does not limit jobs without a key
}

// PerKey reports whether any of the limits is one for each key.
func (l Limits) PerKey() bool { return l.RunningPerKey > 0 }

// Validate checks the limits of a queue. Its error is an [*InvalidError].
func (l Limits) Validate() error {
	for _, limit := range [...]struct {
		field string
		value int
	}{{"Running", l.Running}, {"RunningPerKey", l.RunningPerKey}} {
		if limit.value < 0 || limit.value > MaxRunning {
			return invalid(limit.field, "%d is not between 1 and %d; leave it out for no limit", limit.value, MaxRunning)
		}
	}
	return nil
}

// MaxRunning is the largest value of a limit.
const MaxRunning = 1_000_000
