package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/workflow"
)

// candidate is a schedule with ticks to decide.
type candidate struct {
	name   string
	row    *row // the row as read
	due    overdue
	manual []int64        // ticks that an operator asks for, instead of those that are due
	job    *pawl.Envelope // the job of its ticks, nil for runs
	fires  map[int64]*fire
	broken bool  // its times cannot be computed
	damage error // damage that the latest Check found; the other candidates are decided without this one
}

// fire is a job or a run for one tick. Its ID is chosen before the mutation, because Check may run
// twice.
type fire struct {
	id    pawl.ID
	start *workflow.Starting // nil for a job
}

// decision decides the ticks of a candidate within Check.
type decision struct {
	*candidate
	*change
	ops  driver.Ops
	now  time.Time
	sign *pawl.Keyring
}

// maxAlive limits how many jobs a row names.
const maxAlive = 16

// decide decides the ticks of a candidate, unless the schedule has changed since it was read.
func (c *candidate) decide(ops driver.Ops, sign *pawl.Keyring) (*change, error) {
	was, err := read(ops, c.name)
	if err != nil || was == nil || was.Changes != c.row.Changes {
		return nil, err
	}
	if c.broken {
		broken := &change{name: c.name, was: was, row: was.clone()}
		broken.row.plan(c.name)
		return broken, nil
	}
	d := &decision{c, &change{name: c.name, was: was, row: was.clone()}, ops, ops.Now(), sign}
	if err := d.living(); err != nil {
		return nil, err
	}
	if len(c.manual) > 0 {
		return d.change, d.asked()
	}
	if missed := c.due.missed; missed.n > 0 {
		d.add(entry{Decision: Missed, First: missed.first, Last: missed.last, Ticks: missed.n, At: d.now.UnixNano()})
		d.change.row.Missed = min(d.change.row.Missed+missed.n, MaxMissed)
		d.change.row.Last = missed.last
	}
	for r := d.change.row; r.waits() && len(r.Alive) == 0; {
		if err := d.release(); err != nil {
			return nil, err
		}
	}
	for _, tick := range c.due.ticks {
		if err := d.tick(tick); err != nil {
			return nil, err
		}
		d.change.row.Last = tick
	}
	d.change.row.plan(c.name)
	return d.change, nil
}

// asked fires the ticks that an operator asks for.
func (d *decision) asked() error {
	for _, tick := range d.manual {
		var failed error
		err := d.fire(tick, func(e entry) {
			if e.Decision == Failed {
				failed = wrong("job", "the store refused it: %s", e.Why)
			}
			e.Manual = true
			d.add(e)
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// living removes from the row the jobs that have ended.
func (d *decision) living() error {
	r := d.change.row
	living := r.Alive[:0]
	for _, id := range r.Alive {
		state, err := d.ops.State(id)
		if err != nil && !errors.Is(err, pawl.ErrCorrupt) { // a damaged job does not run again
			return err
		}
		if isAlive(state) {
			living = append(living, id)
		}
	}
	r.Alive = living
	return nil
}

func isAlive(s pawl.State) bool { return s != "" && s != pawl.Dead && s != pawl.Completed }

// tick decides one tick.
func (d *decision) tick(tick int64) error {
	r, t := d.change.row, d.change.row.terms()
	if t.Overlap == Allow || len(r.Alive) == 0 && len(r.Buffered) == 0 {
		return d.fire(tick, func(e entry) { d.add(e) })
	}
	e := entry{Decision: Skipped, First: tick, Last: tick, Ticks: 1, At: d.now.UnixNano()}
	if len(r.Alive) > 0 {
		e.Job = r.Alive[0]
	}
	switch {
	case t.Overlap == CancelOther || t.Overlap == TerminateOther:
		d.supersede()
	case t.Overlap == Buffer && len(r.Buffered) < t.Buffer:
	case t.Overlap == Buffer:
		e.Why = "the buffer is full"
		fallthrough
	default:
		d.add(e)
		return nil
	}
	d.add(entry{Decision: Buffered, First: tick, Last: tick, Ticks: 1, At: e.At})
	r.Buffered = append(r.Buffered, buffered{Nominal: tick, Entry: r.Entries})
	return nil
}

// supersede replaces a waiting tick by a later one.
func (d *decision) supersede() {
	r := d.change.row
	for _, b := range r.Buffered {
		r.Counts.Buffered--
		r.Counts.Skipped++
		e := entry{Decision: Skipped, First: b.Nominal, Last: b.Nominal, Ticks: 1, At: d.now.UnixNano(), Why: "a later tick took its place"}
		d.entries, d.decided = append(d.entries, numbered{b.Entry, e}), append(d.decided, e)
	}
	r.Buffered = r.Buffered[:0]
}

// release fires the first tick that waits.
func (d *decision) release() error {
	r := d.change.row
	b := r.Buffered[0]
	r.Buffered = r.Buffered[1:]
	return d.fire(b.Nominal, func(e entry) {
		if e.Decision == Fired {
			e.Decision = Buffered
		} else {
			r.Counts.Buffered--
			r.Counts.add(e.Decision, 1)
		}
		d.entries, d.decided = append(d.entries, numbered{b.Entry, e}), append(d.decided, e)
	})
}

// fire stores the job or the run of a tick, and reports the result.
func (d *decision) fire(tick int64, report func(entry)) error {
	r, f := d.change.row, d.fires[tick]
	t := Tick{Schedule: d.candidate.name, Nominal: timeOf(tick), Actual: d.now, Missed: r.Missed, Manual: len(d.manual) > 0,
		CaughtUp: d.now.Sub(timeOf(tick))-r.terms().Spread > grace}
	e := entry{Decision: Fired, First: tick, Last: tick, Ticks: 1, At: d.now.UnixNano()}
	err := d.store(f, d.job, &t)
	switch {
	case err == nil:
		if e.Job = f.id; !t.Manual {
			r.Missed = 0
		}
		d.alive(f.id)
	case refused(err):
		e.Decision, e.Why = Failed, ellipsis.Truncate(err.Error(), maxWhy)
	default:
		return err
	}
	report(e)
	return nil
}

// maxWhy limits the length of a reason, in bytes.
const maxWhy = 512

// refused reports whether an error is about the job itself, so that a later try would fail, too.
func refused(err error) bool {
	return errors.Is(err, pawl.ErrInvalid) || errors.Is(err, pawl.ErrPayloadTooLarge) || errors.Is(err, pawl.ErrBatchTooLarge) ||
		errors.Is(err, pawl.ErrConflict) || errors.Is(err, pawl.ErrSignature)
}

// alive adds a job to those that are alive. With many, the latest count.
func (d *decision) alive(id pawl.ID) {
	r := d.change.row
	if r.Alive = append(r.Alive, id); len(r.Alive) > maxAlive {
		r.Alive = r.Alive[1:]
	}
}

// store enqueues the job of a tick, or starts its run.
func (d *decision) store(f *fire, job *pawl.Envelope, t *Tick) error {
	if f.start != nil {
		if err := f.start.Check(d.ops); err != nil {
			return err
		}
		f.id = f.start.Run()
		d.starts = append(d.starts, f.start)
		return nil
	}
	e := withTick(job, t)
	e.ID = f.id
	if d.sign != nil {
		if err := d.sign.Sign(e); err != nil {
			return err
		}
	}
	_, err := d.ops.Enqueue(e)
	return err
}

// prepare makes what a tick stores.
func (m *Manager) prepare(c *candidate, tick int64, id string) error {
	f := &fire{id: pawl.NewID(m.store.Now())}
	if run := c.row.Action.Run; run != nil {
		if id == "" {
			id = RunID(c.name, timeOf(tick))
		}
		start, err := workflow.Open(m.store, nil).Starting(*run, id)
		if err != nil {
			return err
		}
		f.start = start
	}
	c.fires[tick] = f
	return nil
}

// RunID returns the ID of the run that a schedule starts at a time.
func RunID(schedule string, nominal time.Time) string {
	return fmt.Sprintf("%s/%s", schedule, stamp(nominal))
}

// candidate returns a schedule with ticks to decide, up to the given number.
func (m *Manager) candidate(name string, r *row, now int64, most int) (*candidate, error) {
	c := &candidate{name: name, row: r, fires: make(map[int64]*fire)}
	t := r.terms()
	cal, err := t.calendar(name)
	if err != nil {
		c.broken = true
		return c, nil
	}
	if r.Action.Job != nil {
		if c.job, err = r.Action.template(); err != nil {
			return nil, err
		}
	}
	if r.Due != 0 && r.Due <= now {
		keep, oldest := t.CatchUp, t.Window
		if keep == None && (oldest == 0 || oldest > grace) {
			oldest = grace
		}
		c.due = cal.overdue(r.Last, now, keep, oldest)
	}
	for _, b := range r.Buffered {
		if err := m.prepare(c, b.Nominal, ""); err != nil {
			return nil, err
		}
	}
	if c.due.ticks = c.due.ticks[:min(len(c.due.ticks), most)]; len(c.due.ticks) == 0 {
		return c, nil
	}
	for _, tick := range c.due.ticks {
		if err := m.prepare(c, tick, ""); err != nil {
			return nil, err
		}
	}
	return c, nil
}
