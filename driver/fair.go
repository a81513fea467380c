package driver

import "time"

// In a queue with [pawl.Limits.Fair], keys take turns by start-time fair queuing. Each job gets a tag when it becomes
// ready, and ready jobs of one priority run in the order of their tags. A tag comes one step after the last tag of its
// key, or 1/weight of a step, and after the front of its priority: the tags of the jobs that started last. So the first
// job of a key comes in at the front, and a key with many jobs reaches far behind it.
//
// The front moves by at most one step with each start. So a job that starts out of order, such as a job of another kind
// than the jobs before it, does not move the front far behind the others.

// FairStep is the distance between the tags of a key with jobs of weight 1. Every weight divides it, so turns stay
// exact.
const FairStep = 2520

// FairPart is the part of a step that a job takes, given its weight, or 0 for 1.
func FairPart(weight int) int64 { return FairStep / int64(max(1, weight)) }

// lastFirstFront is in the year 2097. It leaves room for more tags than a queue ever gives, since a record holds tags up
// to 1<<62.
const lastFirstFront = 1<<62 - 1<<59

// FirstFront returns where the front of a priority begins: at the present time, so ready jobs without a tag come first.
// A clock that is wrong by ages does not move it beyond what a record can hold.
func FirstFront(now time.Time) int64 {
	switch {
	case now.Before(time.Unix(0, 1)):
		return 1
	case now.After(time.Unix(0, lastFirstFront)):
		return lastFirstFront
	}
	return now.UnixNano()
}

// NextTag returns the tag of a job that becomes ready, given the front of its priority, the last tag of
// its key, or 0 for none, and its weight.
func NextTag(front, last int64, weight int) int64 { return max(front, last) + FairPart(weight) }

// NextFront returns the front of a priority after the start of a job with a tag.
func NextFront(front, tag int64) int64 { return max(front, min(tag, front+FairStep)) }
