package schedule

import (
	"errors"
	"fmt"
	"slices"
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
	failed error // why the latest Check stopped before a tick of it; the other candidates are decided
}

// fire is a job or a run for one tick. Its ID is chosen before the mutation, because Check may run
// twice.
type fire struct {
	id    pawl.ID
	start *workflow.Starting // nil for a job
	err   error              // why the run cannot start
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

// decide decides the ticks of a candidate, unless the schedule has changed since it was read. With an error, it
// returns what it decided before the tick of the error, nil if nothing.
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
	err = d.decideDue()
	if err != nil && len(d.entries) == 0 {
		return nil, err
	}
	d.change.row.plan(c.name)
	return d.change, err
}

// decideDue decides the ticks that are due, and releases those that no longer wait.
func (d *decision) decideDue() error {
	r := d.change.row
	if missed := d.due.missed; missed.n > 0 {
		d.add(entry{Decision: Missed, First: missed.first, Last: missed.last, Ticks: missed.n, At: d.now.UnixNano()})
		r.Missed = min(r.Missed+missed.n, MaxMissed)
		r.Last = missed.last
	}
	for r.waits() && len(r.Alive) == 0 {
		if err := d.release(); err != nil {
			return err
		}
	}
	for _, tick := range d.due.ticks {
		if err := d.tick(tick); err != nil {
			return err
		}
		r.Last = tick
	}
	return nil
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
	return d.fire(b.Nominal, func(e entry) {
		r.Buffered = r.Buffered[1:]
		if e.Decision == Fired {
			e.Decision = Buffered
		} else {
			r.Counts.Buffered--
			r.Counts.add(e.Decision, 1)
		}
		d.entries, d.decided = append(d.entries, numbered{b.Entry, e}), append(d.decided, e)
	})
}

// fire stores the job or the run of a tick, and reports the result. After an error nothing has changed.
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

// refusals are errors about the job or the run itself, so that a later try would fail, too. [pawl.ErrNotFound] says
// that there is no such group. Any other error, such as that of a codec, may pass: the tick stays due.
var refusals = []error{pawl.ErrInvalid, pawl.ErrPayloadTooLarge, pawl.ErrBatchTooLarge, pawl.ErrConflict, pawl.ErrSignature,
	pawl.ErrNotFound, pawl.ErrUnsupported, workflow.ErrTooLarge}

func refused(err error) bool {
	return slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
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
	if f.err != nil {
		return f.err
	}
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
func (m *Manager) prepare(c *candidate, tick int64, id string) {
	f := &fire{id: pawl.NewID(m.store.Now())}
	if run := c.row.Action.Run; run != nil {
		if id == "" {
			id = RunID(c.name, timeOf(tick))
		}
		f.start, f.err = workflow.Open(m.store, nil).Starting(*run, id)
	}
	c.fires[tick] = f
}

// manualPart is the part of the ID of a triggered run between the name of the schedule and an ID of the trigger.
const manualPart = "manual/"

// RunID returns the ID of the run that a schedule starts at a time. [TickOfRun] reads it.
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
		m.prepare(c, b.Nominal, "")
	}
	c.due.ticks = c.due.ticks[:min(len(c.due.ticks), most)]
	for _, tick := range c.due.ticks {
		m.prepare(c, tick, "")
	}
	return c, nil
}
