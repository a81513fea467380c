package workflow

import (
	"errors"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run of a flow with [StartRate] or [StartRatePerKey] is in the line of its flow, its key, or both, from its start
// until a worker has it and it may begin. One mutation lets the run begin: it counts the start in each rate, takes
// the places of the run, and removes the run from its lines. So a waiting run uses up nothing.
//
// The first n runs in line may begin, where n is the smaller of the starts that the rate has left and the free places.
// The third run in line needs three of each, so no run overtakes another. A run in the line of its flow keeps its
// number in the line of its key.
//
// The job of a run is delayed until its turn, which its number in line predicts. A mutation that shortens a line looks
// at the job of the first run, and makes the job ready if it would become ready too late. A run that comes too early
// waits again.

// wait makes the run wait at a position in line. If the mutation of another run moves it, its job keeps the delay from
// the line that it left; see [places.rouse]. If the first run in line waits for its flow, the mutation that ends that
// wait calls the others.
func (p *places) wait(r rows, l *lot, position int, run pawl.ID, row *runRow) error {
	due := l.due(position, row)
	row.Due = unixNano(due)
	row.becomes(Waiting)
	if run != p.self {
		l.vacated = true
		return nil
	}
	p.turn = due
	if position > 1 && l.kind == placeOfKey && len(l.line) > 0 {
		first, err := p.waiting(r, l, l.line[0])
		if err != nil {
			return err
		}
		if first != nil && l.waitsForFlow(first) {
			p.turn = time.Time{}
		}
	}
	if p.turn.IsZero() {
		p.turn = p.now.Add(forever)
	}
	return nil
}

// unsure is the delay of a run that may begin once others have begun. Their mutations call it.
const unsure = time.Minute

// rated reports whether the lot has a rate.
func (l *lot) rated() bool { return l.pace.Limits() }

// admits reports whether the run at a position in line may begin.
func (l *lot) admits(position int, row *runRow) bool {
	return position <= min(l.pace.Left(l.tat, l.now), lineRead) && (l.limit == 0 || row.Places&l.kind != 0 || l.taken+position <= l.limit)
}

// due returns when the run at a position in line may begin, unless other runs leave the line before. It is zero if the
// run waits for the end of another run.
func (l *lot) due(position int, row *runRow) time.Time {
	if !l.rated() || !l.free() && row.Places&l.kind == 0 {
		return time.Time{}
	}
	from := l.tat
	if from.Before(l.now) {
		from = l.now
	}
	if step := l.pace.When(from, 2).Sub(l.pace.When(from, 1)); time.Duration(position) > forever/step {
		return l.now.Add(forever)
	}
	if due := l.pace.When(from, position); due.After(l.now) {
		return due
	}
	return l.now.Add(unsure)
}

// waitsForFlow reports whether a run in the line of its key waits in that of its flow.
func (l *lot) waitsForFlow(row *runRow) bool {
	return l.kind == placeOfKey && row.Line&placeOfFlow != 0
}

// begin counts the start of a run that [places.take] let begin.
func (p *places) begin(r rows, run pawl.ID, row *runRow) error {
	for _, kind := range p.limits.needs(row) {
		l, err := p.lot(r, row, kind)
		if err != nil {
			return err
		}
		l.leaveLine(row)
		if l.tat, l.changed = l.pace.Start(l.tat, p.now, 1), true; l.limit > 0 && row.Places&kind == 0 {
			l.occupy(run, row)
		}
	}
	if p.limits.rated() {
		row.Places |= started
	}
	return nil
}

// rouse ensures that workers get the runs whose turn it is, in each line that has become shorter or has got a run from
// another line.
func (p *places) rouse(ops driver.Ops, r rows) error {
	changed := func(l *lot) bool { return l.rated() && l.vacated }
	for i := slices.IndexFunc(p.lots, changed); i >= 0; i = slices.IndexFunc(p.lots, changed) {
		l := p.lots[i]
		l.vacated = false
		if err := p.call(ops, r, l, p.self); err != nil {
			return err
		}
	}
	return nil
}

// call ensures that workers get the runs that may begin, and get the first run when it may begin. A run that cannot
// begin leaves the line: it waits again once it is resumed. Own is the run of the mutation, which call skips.
func (p *places) call(ops driver.Ops, r rows, l *lot, own pawl.ID) error {
	for i := 0; i == 0 || l.admits(i+1, &runRow{}); {
		if i >= len(l.line) {
			if !l.more || p.read > 0 {
				return nil
			}
			if err := p.readLine(r, l); err != nil {
				return err
			}
			continue
		}
		w := l.line[i]
		if w.run == own {
			i++
			continue
		}
		row, err := p.waiting(r, l, w)
		if err != nil {
			return err
		}
		if row == nil {
			l.line = slices.Delete(l.line, i, i+1) // damage left it
			l.delete(w.key)
			continue
		}
		comes, err := p.comes(ops, w.run, row, l, i+1)
		if err != nil {
			return err
		}
		if comes {
			i++
			continue
		}
		p.change(w.run, row)
		if err := p.leaveLines(r, row); err != nil {
			return err
		}
	}
	return nil
}

// comes reports whether a worker will get a run in line, and makes the run's job ready if it would become ready too
// late.
func (p *places) comes(ops driver.Ops, run pawl.ID, row *runRow, l *lot, position int) (bool, error) {
	if row.Cancel != "" || row.Terminate != "" || row.Status == Blocked || row.Paused && l.admits(position, row) {
		return false, nil
	}
	job, err := ops.Job(run)
	switch {
	case errors.Is(err, pawl.ErrNotFound), errors.Is(err, pawl.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case job.State == pawl.Ready, job.State == pawl.Leased:
		return true, nil
	case job.State != pawl.Delayed:
		return false, nil
	}
	if l.waitsForFlow(row) {
		return true, nil
	}
	due := l.due(position, row)
	if l.admits(position, row) {
		due = l.now
	}
	if !due.IsZero() && job.NotBefore.After(due) {
		err = p.wake(ops, run)
	}
	return true, err
}
