package memory

import "time"

// stillSleep is the least wait of the alarm if the wall clock stood still since it was
// set. With a clock that a test has stopped, the alarm would otherwise ring without
// end.
const stillSleep = 10 * time.Millisecond

// longestSleep is the longest wait of the alarm while jobs wait for a time of day.
// After it the alarm notices a clock that was set.
const longestSleep = time.Minute

// setAlarm makes the queue catch up when the next job, deadline, or record is due, or
// the next lease expires.
func (q *Queue) setAlarm() {
	q.unsetAlarm()
	if wait, ok := q.untilNext(); ok {
		q.ringing.Add(1)
		q.alarm = time.AfterFunc(wait, q.ring)
	}
}

// unsetAlarm stops the alarm, unless it is already ringing.
func (q *Queue) unsetAlarm() {
	if q.alarm != nil && q.alarm.Stop() {
		q.ringing.Done()
	}
	q.alarm = nil
}

func (q *Queue) ring() {
	defer q.ringing.Done()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	before := q.moves.Now
	q.begin()
	q.still = !q.moves.Now.After(before)
	q.catchUp()
	q.still = false
}

// untilNext returns how long it is until something falls due; ok is false if nothing
// will.
func (q *Queue) untilNext() (wait time.Duration, ok bool) {
	sooner := func(d time.Duration) {
		if !ok || d < wait {
			wait, ok = d, true
		}
	}
	if len(q.delayed.jobs) > 0 {
		sooner(q.untilTime(q.delayed.jobs[0].NotBefore))
	}
	if len(q.mortal.jobs) > 0 {
		sooner(q.untilTime(q.mortal.jobs[0].Deadline))
	}
	if len(q.completed.jobs) > 0 {
		sooner(q.untilTime(q.completed.jobs[0].retainedUntil()))
	}
	if len(q.leased.jobs) > 0 {
		sooner(time.Until(q.leased.jobs[0].expires))
	}
	q.eachRest(func(at time.Time) { sooner(q.untilTime(at)) })
	return wait, ok
}

// untilTime returns how long the alarm waits for a time of day.
func (q *Queue) untilTime(t time.Time) time.Duration {
	wait := min(t.Sub(q.moves.Now), longestSleep)
	if q.still {
		wait = max(wait, stillSleep)
	}
	return wait
}
