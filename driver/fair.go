package driver

// In a queue with [pawl.Limits.Fair], keys take turns by start-time fair queuing. Each job gets a tag when
// it becomes ready, and ready jobs of one priority run in the order of their tags. A tag comes one step
// after the last tag of its key, and not before the front of its priority: the tags of the jobs that
// started. So a key that begins to have jobs comes in at the front, and a key with many jobs reaches far
// behind it.
//
// The front moves by at most one step with each start. A job that starts out of order, such as one of
// another kind than the jobs before it, so does not carry the front far behind the others.

// FairStep is the distance between the tags of a key. It leaves room for weights.
const FairStep = 1000

// NextTag returns the tag of a job that becomes ready, given the front of its priority and the last tag of
// its key, or 0 for none.
func NextTag(front, last int64) int64 { return max(front, last) + FairStep }

// NextFront returns the front of a priority after the start of a job with a tag.
func NextFront(front, tag int64) int64 { return max(front, min(tag, front+FairStep)) }
