package memory

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// emit tells what happened to a job, which stands where that has put it. It is called
// within the transition, whose events so come in their order, and once nothing can
// keep the transition from being made.
func (q *Queue) emit(j *job, e pawl.Event) {
	if q.opts.OnEvent == nil && q.opts.Collector == nil && !q.waiters.Any() {
		return
	}
	now := j.Envelope // not the queue's own, which goes on changing
	now.Cursor = nil
	e.At, e.Job = q.now, &now
	q.waiters.Report(e)
	if q.opts.Collector != nil {
		driver.CountEvent(q.opts.Collector, e)
	}
	if q.opts.OnEvent != nil {
		q.opts.OnEvent(e)
	}
}
