package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Source is what a [Reader] reads: a [Store], or a *bolt.Reader for the file of a stopped app.
type Source = workflow.Source

// Reader reads schedules and changes nothing. Its methods are safe for concurrent use. Besides the
// documented errors, they return the errors of the source, and [pawl.ErrCorrupt] or
// [pawl.ErrNewerFormat] for unreadable rows.
type Reader struct {
	source Source
}

// Read returns a reader over a source.
func Read(s Source) *Reader { return &Reader{s} }

// Decision is what happened to a tick.
type Decision string

const (
	Fired    Decision = "fired"    // its job was enqueued, or its run was started
	Buffered Decision = "buffered" // it waits, or waited, for the end of an earlier job
	Skipped  Decision = "skipped"  // an earlier job was alive
	Missed   Decision = "missed"   // it was too late
	Paused   Decision = "paused"   // the schedule was paused
	Failed   Decision = "failed"   // the store refused its job
	Clock    Decision = "clock"    // no tick: the clock was set back by more than a day, and the schedule started over
)

// MaxHistory is how many entries the history of a schedule keeps.
const MaxHistory = 200

// Entry is a line in the history of a schedule: a decision about a tick, or the same decision about
// several ticks in a row.
type Entry struct {
	N        uint64 // counts from 1
	Decision Decision
	First    time.Time // the tick, or the first of them
	Last     time.Time
	Ticks    int       // how many ticks; MaxMissed stands for that many or more
	At       time.Time // when the last tick was decided
	Job      pawl.ID   // the job or run that it fired, or that kept it from firing
	Why      string    // a reason, if there is more to say
	Manual   bool      // an operator caused it
}

func (e *entry) export(n uint64) Entry {
	return Entry{N: n, Decision: e.Decision, First: timeOf(e.First), Last: timeOf(e.Last), Ticks: e.Ticks, At: timeOf(e.At),
		Job: e.Job, Why: e.Why, Manual: e.Manual}
}

// Counts says how many ticks of a schedule had which decision.
type Counts struct {
	Fired, Buffered, Skipped, Missed, Paused, Failed uint64
}

func (c *Counts) add(d Decision, n int) {
	switch d {
	case Fired:
		c.Fired += uint64(n)
	case Buffered:
		c.Buffered += uint64(n)
	case Skipped:
		c.Skipped += uint64(n)
	case Missed:
		c.Missed += uint64(n)
	case Paused:
		c.Paused += uint64(n)
	case Failed:
		c.Failed += uint64(n)
	}
}

// Info is a schedule.
type Info struct {
	Name     string
	Group    string // group of the program that defines it; "" if an operator does
	Terms    Terms  // terms in force
	Words    string // when it happens, in English
	Defined  Terms  // terms as defined; different from Terms if an operator has set others
	Override bool   // an operator has set other terms

	Job     *pawl.Envelope     // what each tick enqueues; nil for a run
	Run     *workflow.Template // what each tick starts; nil for a job
	Created time.Time

	Paused  time.Time // start of the pause; zero if it is not paused
	Note    string    // note of the operator who paused it
	Retired time.Time // since when its program does not define it; zero if it does
	Broken  string    // why its times cannot be computed; "" if they can

	Next     time.Time   // the next tick; zero for none
	Due      time.Time   // when the next tick is decided; zero if the schedule does not fire
	Last     time.Time   // every tick up to here is decided
	Alive    []pawl.ID   // its latest jobs or runs that had not ended at the last decision
	Buffered []time.Time // ticks that wait for the end of these jobs or runs
	Counts   Counts
	Entries  uint64 // the number of the newest entry in its history
}

func (r *row) info(name string) Info {
	i := Info{
		Name: name, Group: r.Group, Terms: *r.terms(), Words: r.terms().words(name), Defined: r.Terms, Override: r.Override != nil,
		Run: r.Action.Run, Created: timeOf(r.Created), Retired: timeOf(r.Retired), Broken: r.Broken,
		Next: timeOf(r.Next), Due: timeOf(r.Due), Last: timeOf(r.Last), Alive: r.Alive, Counts: r.Counts, Entries: r.Entries,
	}
	if r.Action.Job != nil {
		i.Job, _ = r.Action.template()
	}
	if r.Paused != nil {
		i.Paused, i.Note = timeOf(r.Paused.Since), r.Paused.Note
	}
	for _, b := range r.Buffered {
		i.Buffered = append(i.Buffered, timeOf(b.Nominal))
	}
	return i
}

// Get returns a schedule, or [ErrNotFound].
func (r *Reader) Get(ctx context.Context, name string) (info Info, err error) {
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		row, err := mustRead(tx, name)
		if err == nil {
			info = row.info(name)
		}
		return err
	})
	return info, err
}

// mustRead returns the row of a schedule that must exist.
func mustRead(tx driver.Reader, name string) (*row, error) {
	row, err := read(tx, name)
	if row == nil && err == nil {
		err = fmt.Errorf("schedule %q: %w", name, ErrNotFound)
	}
	return row, err
}

// MaxListed is the maximum number of schedules that one call of [Reader.List] returns.
const MaxListed = 1000

// List returns up to max schedules whose names follow after, in the order of their names. After is
// "" for the first ones. A damaged schedule has only its name, and Broken says what is wrong.
func (r *Reader) List(ctx context.Context, after string, max int) (list []Info, err error) {
	if max < 1 || max > MaxListed {
		return nil, wrong("max", "%d is not between 1 and %d", max, MaxListed)
	}
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		list = nil
		return each(tx, after, func(name string, row *row, damage error) bool {
			if damage != nil {
				list = append(list, Info{Name: name, Broken: damage.Error()})
			} else {
				list = append(list, row.info(name))
			}
			return len(list) < max
		})
	})
	return list, err
}

// MaxNext is the maximum number of ticks that one call of [Reader.Next] returns.
const MaxNext = 1000

// Next returns the next ticks of a schedule, up to n. For a paused or retired schedule, it returns
// the ticks that would follow. It returns [ErrNotFound] if there is no such schedule.
func (r *Reader) Next(ctx context.Context, name string, n int) (ticks []time.Time, err error) {
	if n < 1 || n > MaxNext {
		return nil, wrong("n", "%d is not between 1 and %d", n, MaxNext)
	}
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		ticks = nil
		row, err := mustRead(tx, name)
		if err != nil {
			return err
		}
		c, err := row.terms().calendar(name)
		if err != nil {
			return fmt.Errorf("schedule %q: %w", name, err)
		}
		for t := c.next(row.Last); t != 0 && len(ticks) < n; t = c.next(t) {
			ticks = append(ticks, time.Unix(0, t).In(c.zoneOf()))
		}
		return nil
	})
	return ticks, err
}

func (c *calendar) zoneOf() *time.Location {
	if zone := c.spec.Zone(); zone != nil {
		return zone
	}
	return c.zone
}

// History returns the kept entries of a schedule whose numbers follow after, oldest first. It
// returns [ErrNotFound] if there is no such schedule.
func (r *Reader) History(ctx context.Context, name string, after uint64) (list []Entry, err error) {
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		list = nil
		if _, err := mustRead(tx, name); err != nil {
			return err
		}
		var failed error
		span := driver.Span{Prefix: nameKey(name), From: entryKey(name, after+1)}
		err := present(tx.Scan(tableHistory, span, func(key, value []byte) bool {
			var e entry
			n, err := parseEntry(key, value, &e)
			if err != nil {
				failed = err
				return false
			}
			list = append(list, e.export(n))
			return true
		}))
		if failed != nil {
			return failed
		}
		return err
	})
	return list, err
}
