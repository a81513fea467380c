package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Runs are stored before any job, so that a job of a run never arrives without its rows. An
// import that ends early leaves runs without jobs, which do nothing, and the next import
// continues with them. A run does not continue before the runs that it waits for are stored.

// storedRun is a run to store, and its position in the export.
type storedRun struct {
	id       pawl.ID // in the export
	flow     string
	name     string    // the ID from its starter
	offset   int64     // of its first line
	waits    bool      // for a signal or for another run
	children []pawl.ID // runs that it waits for

	there bool // the target has it
	ended bool // it has ended, here or there
	left  bool // skipped, since another run has its name or the name of a run it waits for
}

// errApart concerns the lines of a run, which must be consecutive.
var errApart = errors.New("it stands between the lines of a run whose last line is missing")

// run checks a line of a run.
func (c *checking) run(x *exportRun, offset int64) error {
	if !c.rows.Within() {
		c.runAt = offset
	}
	run, err := c.rows.Add(x.part())
	if err != nil || run == nil {
		return err
	}
	if !x.fits(run) {
		return invalid("run", "it says that it is %s of flow %q, and its row says another one", x.Run, textOf(x.Flow))
	}
	c.seen.Runs++
	c.runs = append(c.runs, storedRun{
		id: run.Run, flow: run.Flow, name: run.ID, offset: c.runAt,
		waits: run.Status == workflow.Waiting, children: run.Children, ended: run.Status.Ended(),
	})
	return nil
}

// refuseTwinRuns looks for duplicate runs in the export, and leaves the runs sorted by ID.
func (m *importer) refuseTwinRuns() error {
	byName := func(a, b storedRun) int {
		return cmp.Or(strings.Compare(a.flow, b.flow), strings.Compare(a.name, b.name))
	}
	slices.SortStableFunc(m.runs, byName)
	for i := 1; i < len(m.runs); i++ {
		if a, b := &m.runs[i-1], &m.runs[i]; byName(*a, *b) == 0 {
			return m.twins(a.offset, b.offset, fmt.Sprintf("workflow %s %q", b.flow, truncate(b.name)))
		}
	}
	slices.SortFunc(m.runs, func(a, b storedRun) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.offset, b.offset))
	})
	for i := 1; i < len(m.runs); i++ {
		if a, b := &m.runs[i-1], &m.runs[i]; a.id == b.id {
			return m.twins(a.offset, b.offset, fmt.Sprintf("run %s", b.id))
		}
	}
	return nil
}

// runOf returns the run with an ID in the export, or nil.
func (m *importer) runOf(id pawl.ID) *storedRun {
	i, found := slices.BinarySearchFunc(m.runs, id, func(run storedRun, id pawl.ID) int { return bytes.Compare(run.id[:], id[:]) })
	if !found {
		return nil
	}
	return &m.runs[i]
}

// newID returns the ID that a run gets in the target. It is derived from the exported ID, so
// that repeating an import gives the same IDs, and so that rows naming a run can be stored
// before it, or by another import.
func (m *importer) newID(id pawl.ID) pawl.ID {
	if m.opts.KeepIDs {
		return id
	}
	sum := sha256.Sum256(append([]byte("pawl import "), id[:]...))
	n := id // keep the time
	copy(n[6:], sum[:])
	n[6], n[8] = n[6]&0x0f|0x70, n[8]&0x3f|0x80
	return n
}

// leaveOutRuns finds which runs the target has, by the names that users gave them.
func (m *importer) leaveOutRuns(ctx context.Context) error {
	if len(m.runs) == 0 {
		return nil
	}
	first, taken := -1, 0
	for i := range m.runs {
		run := &m.runs[i]
		if err := m.lookForRun(ctx, run); err != nil {
			return fmt.Errorf("look which runs are there already: %w; nothing was stored", err)
		}
		if run.there || run.left {
			if taken++; first < 0 {
				first = i
			}
		}
	}
	if taken > 0 && !m.opts.SkipExisting {
		run := m.runs[first]
		return fmt.Errorf("line %d: workflow %s %q: %w: the target has a run of that ID, as of %d of %d runs of the export; nothing was stored; SkipExisting leaves them out",
			m.in.number(run.offset), run.flow, truncate(run.name), pawl.ErrConflict, taken, len(m.runs))
	}
	m.leaveOutWaiting()
	return m.leaveOutRunJobs(ctx)
}

// lookForRun checks whether the target has a run, or another one with its name.
func (m *importer) lookForRun(ctx context.Context, run *storedRun) error {
	w := m.to.Workflows()
	own := m.newID(run.id)
	known, err := w.Find(ctx, run.flow, run.name)
	switch {
	case errors.Is(err, pawl.ErrCorrupt), err == nil && known != own:
		run.left = true
		return nil
	case err != nil && !errors.Is(err, workflow.ErrNotFound):
		return err
	}
	there, err := w.Show(ctx, own, RunInfo)
	switch {
	case errors.Is(err, workflow.ErrNotFound):
		return nil
	case errors.Is(err, pawl.ErrCorrupt), err == nil && known != own:
		run.left = true
		return nil
	case err != nil:
		return err
	}
	run.there, run.ended = true, run.ended || there.Status.Ended()
	return nil
}

// leaveOutWaiting also skips the runs that wait for a skipped run, since they would wait
// forever.
func (m *importer) leaveOutWaiting() {
	for more := true; more; {
		more = false
		for i := range m.runs {
			run := &m.runs[i]
			for _, id := range run.children {
				if child := m.runOf(id); child != nil && child.left && !run.left && !run.there {
					run.left, more = true, true
				}
			}
		}
	}
	for i := range m.runs {
		if m.runs[i].left || m.runs[i].there {
			m.done.RunsSkipped++
		}
	}
}

// leaveOutRunJobs skips the jobs of skipped runs, and of runs that have advanced in the target:
// the job is there, or the run has ended.
func (m *importer) leaveOutRunJobs(ctx context.Context) error {
	left := m.jobs[:0]
	for _, job := range m.jobs {
		run := m.runOf(job.id)
		out := run != nil && run.left
		if run != nil && run.there && !m.opts.KeepIDs { // otherwise it is looked up with the others
			_, err := m.to.Job(ctx, m.newID(job.id))
			if err != nil && !errors.Is(err, pawl.ErrNotFound) && !errors.Is(err, pawl.ErrCorrupt) {
				return fmt.Errorf("look which jobs are there already: %w; nothing was stored", err)
			}
			out = out || !errors.Is(err, pawl.ErrNotFound)
		}
		if out || run != nil && run.there && run.ended {
			m.done.Skipped++
			continue
		}
		left = append(left, job)
	}
	m.jobs = left
	return nil
}

// storeRuns stores the runs that are missing, portion by portion.
func (m *importer) storeRuns(ctx context.Context) error {
	missing := slices.DeleteFunc(slices.Clone(m.runs), func(run storedRun) bool { return run.left || run.there })
	slices.SortFunc(missing, func(a, b storedRun) int { return cmp.Compare(a.offset, b.offset) })
	p := portions[*workflow.Rows]{m: m, store: func(parts []*workflow.Rows) error { return m.storeSomeRuns(ctx, parts) }}
	for i := range missing {
		run := &missing[i]
		for offset, last := run.offset, false; !last; offset = m.in.next {
			part, n, err := m.rereadRun(run, offset)
			if err := p.add(part, n, err); err != nil {
				return err
			}
			last = part.Last()
		}
	}
	return p.flush()
}

func (m *importer) storeSomeRuns(ctx context.Context, parts []*workflow.Rows) error {
	if err := m.to.Workflows().RestoreRows(ctx, parts...); err != nil {
		return fmt.Errorf("run %s and those stored with it: perhaps not stored: %w; %d runs and no jobs were stored before: "+
			"importing again with SkipExisting goes on behind them", parts[0].Run, err, m.done.Runs)
	}
	for _, part := range parts {
		if part.Last() {
			m.done.Runs++
		}
	}
	return nil
}

// rereadRun reads a line of a run again, and assigns the ID that the run has in the target.
func (m *importer) rereadRun(run *storedRun, offset int64) (*workflow.Rows, int, error) {
	return reread(m, offset, func(l *exportLine) (*workflow.Rows, bool) {
		if l.Run == nil || l.Run.Run != run.id {
			return nil, false
		}
		part := l.Run.part()
		return part, m.opts.KeepIDs || part.Rename(m.newID) == nil
	})
}
