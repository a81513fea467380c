package workflow

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The row of a run owns all rows whose keys begin with the ID of the run. The job of a run has the
// same ID. A mutation that knows in advance which runs it changes declares them; see
// [driver.Declared]. Other mutations run alone: restores, forks, and removals of what is left of a
// run with more rows than a portion.

// needsRun declares a run and its job.
func needsRun(n *driver.Needs, runs ...pawl.ID) {
	for _, run := range runs {
		n.Own(tableRuns, run[:])
		n.Job(run)
	}
}

// Declare declares the run.
func (c *checkpoint) Declare(n *driver.Needs) { needsRun(n, c.lease.ID) }

// needsSignals declares the first signal of each name.
func needsSignals(n *driver.Needs, run pawl.ID, names []string) {
	for _, name := range names {
		n.Span(tableSignals, driver.Span{Prefix: signalsOf(run, name), Limit: 1})
	}
}

// Declare declares the run and the first signal of each name.
func (t *takeSignal) Declare(n *driver.Needs) {
	needsRun(n, t.x.run)
	needsSignals(n, t.x.run, t.names())
}

// Declare declares the run and what it waits for.
func (s *suspend) Declare(n *driver.Needs) {
	needsRun(n, s.x.run)
	for _, w := range s.waits {
		needsSignals(n, s.x.run, w.signals)
		needsRun(n, w.children...)
		if w.child != nil {
			n.Read(tableSteps, seqKey(s.x.run, w.child.seq))
		}
	}
}

// Declare declares the run, the parent with the entry that waits for the run, and the children.
func (f *finish) Declare(n *driver.Needs) {
	needsRun(n, f.x.run)
	needsRun(n, f.open...)
	if row := f.x.row; !row.Parent.IsZero() {
		needsRun(n, row.Parent)
		n.Read(tableSteps, seqKey(row.Parent, row.ParentSeq))
	}
	f.places.needs(n, f.x.flow.openLimits(), f.x.row, f.x.row.Places|f.x.row.Line)
}

// needs declares the places of a run, and the runs that an earlier Check has found.
func (p *places) needs(n *driver.Needs, l openLimits, row *runRow, kinds placeKind) {
	for _, kind := range placeKinds {
		if kinds&kind != 0 {
			p.needsHead(n, l, row, kind)
		}
	}
	p.needsRuns(n)
}

func (p *places) needsHead(n *driver.Needs, l openLimits, row *runRow, kind placeKind) {
	head := row.placesKey(kind)
	n.Own(tablePlaces, head)
	n.Span(tablePlaces, p.takenSpan(head, l.of(kind)))
	n.Span(tablePlaces, p.lineSpan(head))
}

func (p *places) needsRuns(n *driver.Needs) {
	for run := range p.rows {
		needsRun(n, run)
	}
	for run := range p.looked {
		if p.rows[run] == nil {
			needsRun(n, run)
		}
	}
}

// Declare declares the run and the places that it takes.
func (e *enter) Declare(n *driver.Needs) {
	needsRun(n, e.x.run)
	e.places.needs(n, e.x.flow.openLimits(), e.x.row, placesOf(e.x.flow.openLimits(), e.x.row))
}

// placesOf returns the kinds of places that a run needs, has, or waits for.
func placesOf(l openLimits, row *runRow) (kinds placeKind) {
	for _, kind := range l.needs(row) {
		kinds |= kind
	}
	return kinds | row.Places | row.Line
}

// Declare declares the new run and its ID.
func (s *start) Declare(n *driver.Needs) {
	needsRun(n, s.job.ID)
	n.Row(tableIDs, idKey(s.row.Flow, s.row.ID))
	s.needsPlaces(n)
	s.needsKnown(n)
}

// needsPlaces declares the places of a run that begins when it is started.
func (s *start) needsPlaces(n *driver.Needs) {
	if s.row.Status != Sleeping {
		s.places.needs(n, s.limits, &s.row, placesOf(s.limits, &s.row))
	}
}

// needsKnown declares the runs that have the ID, with what the mutation compares or changes.
func (s *start) needsKnown(n *driver.Needs) {
	for _, run := range s.known {
		if s.signal != nil {
			s.signal.run = run
			s.signal.Declare(n)
			continue
		}
		n.Own(tableRuns, run[:])
		n.Read(tableBlobs, seqKey(run, inputSeq))
	}
}

// Declare declares the run, the child, and the IDs that the child may get.
func (s *startChild) Declare(n *driver.Needs) {
	s.checkpoint.Declare(n)
	needsRun(n, s.start.job.ID)
	for _, id := range s.ids {
		n.Row(tableIDs, idKey(s.row.Flow, id))
	}
	s.needsPlaces(n)
	s.needsKnown(n)
}

// Declare declares the run and its children.
func (c *cancelChildren) Declare(n *driver.Needs) {
	needsRun(n, c.lease.ID)
	needsRun(n, c.open...)
}

// Declare declares the run and its children.
func (w *restart) Declare(n *driver.Needs) {
	needsRun(n, w.x.run)
	needsRun(n, w.open...)
}

// Declare declares the run and the deduplication ID.
func (s *send) Declare(n *driver.Needs) {
	needsRun(n, s.run)
	if s.dedup != "" {
		n.Read(tableSeen, runAnd(s.run, s.dedup))
	}
}

// Declare declares the run and its failed entries, and the parent to wake.
func (q *request) Declare(n *driver.Needs) {
	needsRun(n, q.run)
	if !q.parent.IsZero() {
		needsRun(n, q.parent)
		n.Read(tableSteps, seqKey(q.parent, q.parentSeq))
	}
	for _, seq := range q.failed {
		n.Read(tableSteps, seqKey(q.run, seq))
	}
}

// Declare declares the run.
func (b *block) Declare(n *driver.Needs) { needsRun(n, b.x.run) }

// Declare declares the run.
func (c *clearSpare) Declare(n *driver.Needs) { needsRun(n, c.run) }

// Declare declares the runs.
func (u *unblock) Declare(n *driver.Needs) { needsRun(n, u.runs...) }
