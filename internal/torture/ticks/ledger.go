package ticks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

// Ledger is what is known about the schedules of a story. The zero value is for an empty queue.
type Ledger struct {
	triggered map[string][]pawl.ID
	books     map[string]*book
}

// book is what is known about one schedule.
type book struct {
	created, last time.Time
	entries       map[uint64]schedule.Entry
	newest        uint64
}

// Hear takes a line of a process.
func (l *Ledger) Hear(line string) error {
	words := strings.Fields(line)
	switch {
	case len(words) == 3 && words[0] == triggerLine:
		id, err := pawl.ParseID(words[2])
		if l.triggered == nil {
			l.triggered = make(map[string][]pawl.ID)
		}
		if err == nil {
			l.triggered[words[1]] = append(l.triggered[words[1]], id)
		}
		return err
	case len(words) > 1 && words[0] == oddLine:
		return fmt.Errorf("a process got an error: %s", strings.Join(words[1:], " "))
	}
	return fmt.Errorf("the story has the line %q", line)
}

// Judge compares what is stored with the ticks that must exist. No process uses the queue.
func (l *Ledger) Judge(ctx context.Context, q Queue) error {
	jobs, err := readJobs(ctx, q)
	if err != nil {
		return err
	}
	if l.books == nil {
		l.books = make(map[string]*book)
	}
	var wrong []error
	reader := schedule.Read(q)
	for _, p := range plans {
		info, err := reader.Get(ctx, p.name)
		b := l.books[p.name]
		switch {
		case errors.Is(err, schedule.ErrNotFound) && b == nil && len(l.triggered[p.name]) == 0:
			continue
		case err != nil:
			wrong = append(wrong, err)
			continue
		case b == nil:
			b = &book{created: info.Created, last: info.Created, entries: make(map[uint64]schedule.Entry)}
			l.books[p.name] = b
		}
		history, err := reader.History(ctx, p.name, 0)
		if err == nil {
			err = b.take(&info, history)
		}
		if err == nil {
			err = p.judge(b, &info, jobs[p.name], l.triggered[p.name])
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("schedule %s: %w", p.name, err))
		}
	}
	return errors.Join(wrong...)
}

// readJobs returns the jobs of each schedule.
func readJobs(ctx context.Context, q Queue) (map[string]map[pawl.ID]schedule.Tick, error) {
	jobs := make(map[string]map[pawl.ID]schedule.Tick)
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return nil, err
		}
		tick, ok := schedule.TickOf(e)
		if !ok {
			tick = schedule.Tick{Schedule: "runs"} // the only schedule without its own jobs
		}
		if jobs[tick.Schedule] == nil {
			jobs[tick.Schedule] = make(map[pawl.ID]schedule.Tick)
		}
		jobs[tick.Schedule][e.ID] = tick
	}
	return jobs, nil
}

// take adds the new part of the history of a schedule. Entries change only while they wait, or while
// further ticks join the newest entry.
func (b *book) take(info *schedule.Info, history []schedule.Entry) error {
	switch {
	case !info.Created.Equal(b.created):
		return fmt.Errorf("it was created at %v, and now at %v", b.created, info.Created)
	case info.Last.Before(b.last):
		return fmt.Errorf("it was decided up to %v, and now up to %v", b.last, info.Last)
	case info.Entries < b.newest:
		return fmt.Errorf("its history had %d entries, and now has %d", b.newest, info.Entries)
	}
	for _, e := range history {
		was, known := b.entries[e.N]
		if known && was != e && e.N != b.newest && (was.Decision != schedule.Buffered || !was.Job.IsZero()) {
			return fmt.Errorf("the entry %+v has become %+v", was, e)
		}
		b.entries[e.N] = e
	}
	for n := b.newest + 1; n <= info.Entries; n++ {
		if _, known := b.entries[n]; !known {
			return fmt.Errorf("its history lacks the entry %d of %d", n, info.Entries)
		}
	}
	b.newest, b.last = info.Entries, info.Last
	return nil
}

// judge requires that each tick of a schedule has one decision, and each decision its job.
func (p *plan) judge(b *book, info *schedule.Info, jobs map[pawl.ID]schedule.Tick, triggered []pawl.ID) error {
	decided := make(map[int64]*schedule.Entry)
	used := make(map[pawl.ID]bool)
	var sum schedule.Counts
	counts := map[schedule.Decision]*uint64{schedule.Fired: &sum.Fired, schedule.Buffered: &sum.Buffered,
		schedule.Skipped: &sum.Skipped, schedule.Missed: &sum.Missed, schedule.Paused: &sum.Paused}
	for n := uint64(1); n <= b.newest; n++ {
		e := b.entries[n]
		if !e.Manual {
			if err := p.enter(decided, &e); err != nil {
				return err
			}
		}
		if counts[e.Decision] == nil {
			return fmt.Errorf("an entry is %+v", e)
		}
		*counts[e.Decision] += uint64(e.Ticks)
		if err := p.hasJob(&e, info, jobs, used); err != nil {
			return err
		}
	}
	for at := p.after(info.Created); at <= info.Last.UnixNano(); at += int64(p.period) {
		if decided[at] == nil {
			return fmt.Errorf("its tick %v has no decision, and it is decided up to %v", time.Unix(0, at), info.Last)
		}
		delete(decided, at)
	}
	for at := range decided {
		return fmt.Errorf("its tick %v is decided, and there is none between %v and %v", time.Unix(0, at), info.Created, info.Last)
	}
	if sum != info.Counts {
		return fmt.Errorf("it counts %+v, and its history %+v", info.Counts, sum)
	}
	for id, tick := range jobs {
		if !used[id] {
			return fmt.Errorf("job %s of the tick %v belongs to no decision", id, tick.Nominal)
		}
	}
	for _, id := range triggered {
		if !used[id] {
			return fmt.Errorf("job %s of a trigger is lost", id)
		}
	}
	return nil
}

// after returns the first tick after a time.
func (p *plan) after(t time.Time) int64 {
	period := int64(p.period)
	return (t.UnixNano()/period + 1) * period
}

// enter records a decision for each of its ticks.
func (p *plan) enter(decided map[int64]*schedule.Entry, e *schedule.Entry) error {
	if !slices.Contains(p.allowed, e.Decision) && !(e.Decision == schedule.Missed && e.Why == "no program defined the schedule") {
		return fmt.Errorf("an entry is %+v", *e)
	}
	n := 0
	for at := p.after(e.First.Add(-1)); at <= e.Last.UnixNano(); at += int64(p.period) {
		if other := decided[at]; other != nil {
			return fmt.Errorf("its tick %v has two decisions: %+v and %+v", time.Unix(0, at), *other, *e)
		}
		decided[at] = e
		n++
	}
	if n != e.Ticks {
		return fmt.Errorf("the entry %+v has %d ticks", *e, n)
	}
	return nil
}

// hasJob requires the job of a decision that has one.
func (p *plan) hasJob(e *schedule.Entry, info *schedule.Info, jobs map[pawl.ID]schedule.Tick, used map[pawl.ID]bool) error {
	id := e.Job
	switch {
	case e.Decision == schedule.Buffered && id.IsZero():
		if !slices.ContainsFunc(info.Buffered, func(t time.Time) bool { return t.Equal(e.First) }) {
			return fmt.Errorf("the entry %+v neither waits nor has a job", *e)
		}
		return nil
	case e.Decision != schedule.Fired && e.Decision != schedule.Buffered:
		return nil
	case used[id] && p.name == "runs" && e.Manual: // two triggers at the same time make one run
		return nil
	case used[id]:
		return fmt.Errorf("job %s has two decisions, one of which is %+v", id, *e)
	}
	tick, known := jobs[id]
	if !known {
		return fmt.Errorf("the job of the entry %+v is lost", *e)
	}
	if p.name != "runs" && (!tick.Nominal.Equal(e.First) || tick.Manual != e.Manual) {
		return fmt.Errorf("the entry %+v has a job of the tick %+v", *e, tick)
	}
	used[id] = true
	return nil
}
