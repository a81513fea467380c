package workflow

import (
	"errors"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run of a flow with [StartRate] or [StartRatePerKey] is in the line of its flow, its key, or both, from its start
// until a worker has it and it may begin. The mutation that lets it begin counts the start in each rate, takes its
// places, and removes it from its lines, all at once. So a run that waits uses up nothing.
//
// The first n runs in line may begin, where n is how many starts the rate has left, and how many places are free. The
// third run in line needs three, so nobody overtakes. A run in the line of its flow keeps its number in the line of its
// key.
//
// The job of a run is delayed until its turn, which its number in line predicts. A mutation that shortens a line looks
// at the job of the first run, and makes it ready if it would come too late. A run that comes too early waits again.

// wait makes the run wait at a position in line. If another run moves it, its job keeps its delay from the line that it
// left, see [places.rouse]. If the first run in line waits for its flow, the mutation that ends that wait calls the
// others.
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

// unsure is the delay of a run that may begin when others have. They call it.
const unsure = time.Minute

// rated reports whether the lot has a rate.
func (l *lot) rated() bool { return l.pace.Limits() }

// admits reports whether the run at a position in line may begin.
func (l *lot) admits(position int, row *runRow) bool {
	return position <= min(l.pace.Left(l.tat, l.now), lineRead) && (l.limit == 0 || row.Places&l.kind != 0 || l.taken+position <= l.limit)
}

// due returns when the run at a position in line may begin, if no other leaves the line before. It is zero if that
// is when another run ends.
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

// rouse makes sure that the runs come whose turn it is, in each line that has become shorter, or has a run from
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

// call makes sure that the runs come that may begin, and that the first run comes when it may. A run that
// cannot begin leaves the line: it waits again once it is resumed. One run has its own mutation.
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

// comes reports whether a worker will have a run that is in line, and makes its job ready if it would come too late.
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
