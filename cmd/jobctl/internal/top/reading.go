package top

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// want is what a reading should contain.
type want struct {
	pane   pane
	filter filter
	from   cursor  // where the page begins
	at     cursor  // where this reading begins: at from, or after the rows already read
	rows   int     // how many rows to read
	glance bool    // only the statistics
	job    pawl.ID // the job in the detail; zero for none
	isRun  bool    // it is a run
}

// cursor is a position in the lists of a pane, one list for each of its states.
type cursor struct {
	state int    // which of the pane's states
	after string // admin.Page.Next of the previous page
}

// reading is the result of a reading.
type reading struct {
	want   want
	at     time.Time
	stats  admin.Stats
	runs   workflow.Counts // for the first pane; zero if they cannot be counted: the list of runs then shows the error
	pages  map[pane]page   // page of the pane, or of the panes that the first pane shows in part
	job    *pawl.Envelope
	run    *admin.WorkflowRun
	jobErr error // the job in the detail is gone, or cannot be read
	err    error // error of the reading; no other field is set then
}

// page is a part of the list of a pane.
type page struct {
	rows   []row
	looked int     // how many jobs were read for the rows
	next   *cursor // where the next page begins; nil at the end
}

// live reports whether an app answered, and not its file.
func (r *reading) live() bool { return r.stats.Process != nil || r.stats.Done != nil }

// still reports that the app of a snapshot is still stopped.
type still struct{}

// read returns the command that carries out a reading.
func (m *model) read() tea.Cmd {
	w := m.want()
	return func() tea.Msg {
		r := reading{want: w}
		r.err = m.link.use(m.ctx, func(ctx context.Context, a admin.Admin) error { return r.fill(ctx, a) })
		r.at = m.opts.Now()
		return r
	}
}

// probe returns the command that checks whether the app of a snapshot is back, and then reads.
func (m *model) probe() tea.Cmd {
	read := m.read()
	return func() tea.Msg {
		served, err := m.link.back(m.ctx)
		switch {
		case err != nil:
			return reading{at: m.opts.Now(), err: err}
		case served:
			return read()
		}
		return still{}
	}
}

func (r *reading) fill(ctx context.Context, a admin.Admin) (err error) {
	*r = reading{want: r.want} // a second attempt, after the app disconnected, starts over
	if r.stats, err = a.Stats(ctx); err != nil {
		return err
	}
	switch id := r.want.job; {
	case !id.IsZero():
		if r.want.isRun {
			r.run, err = a.Workflows().Show(ctx, id, admin.RunJournal)
		} else {
			r.job, err = a.Job(ctx, id)
		}
		if errors.Is(err, pawl.ErrNotFound) || errors.Is(err, workflow.ErrNotFound) || errors.Is(err, pawl.ErrCorrupt) {
			r.jobErr, err = err, nil
		}
		return err
	case r.want.glance:
		return nil
	}
	r.pages = map[pane]page{}
	if r.want.pane == runsPane {
		r.runs, _ = a.Workflows().Count(ctx)
		r.pages[runsPane], err = r.want.runs(ctx, a.Workflows())
		return err
	}
	if r.want.pane != queuesPane {
		r.pages[r.want.pane], err = r.want.page(ctx, a)
		return err
	}
	r.runs, _ = a.Workflows().Count(ctx)
	pools := poolLines(r.stats.Queues, r.want.rows)
	height := sectionHeight(r.want.rows+1, len(r.want.filter.queues(r.stats.Queues))+len(pools))
	if height == 0 {
		return nil
	}
	for _, p := range glimpses {
		w := want{pane: p, filter: r.want.filter, rows: sectionRows(height)}
		if r.pages[p], err = w.page(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// scanned is how many jobs one page searches for the words of a filter. The app reads them every
// second, so scanned limits the cost of top.
const scanned = 500

// calls is how many pages of the app are read at most for one page on the screen.
const calls = 8

// scan reads one list after another, with at most that many calls, until all visible rows are filled or
// most jobs or runs were looked at. So it may end early, with the position where the next page begins.
// Read adds to the page what follows a position in a list, and returns the next position.
func (w want) scan(p *page, lists, calls, most int, read func(at cursor) (next string, err error)) error {
	at := w.at
	for range calls {
		if at.state >= lists || len(p.rows) >= w.rows || p.looked >= most {
			break
		}
		next, err := read(at)
		if err != nil {
			return err
		}
		if at.after = next; next == "" {
			at = cursor{state: at.state + 1}
		}
	}
	if at.state < lists {
		p.next = &at
	}
	return nil
}

// page reads one page of jobs, state after state.
func (w want) page(ctx context.Context, a admin.Admin) (p page, err error) {
	states := panes[w.pane].states
	searching, most := len(w.filter.words) > 0, w.rows
	if searching {
		most = scanned
	}
	err = w.scan(&p, len(states), calls, most, func(at cursor) (string, error) {
		listed, err := a.List(ctx, admin.Query{Filter: w.filter.query(states[at.state]), After: at.after, Limit: most - p.looked})
		if err != nil {
			return "", err
		}
		p.looked += len(listed.Jobs)
		for _, job := range listed.Jobs {
			if !searching || w.filter.matches(job) {
				p.rows = append(p.rows, row{Listed: job})
			}
		}
		return listed.Next, nil
	})
	if err == nil && w.pane == runningPane {
		err = p.readProgress(ctx, a)
	}
	return p, err
}

// readProgress reads the progress of the jobs of a page.
func (p *page) readProgress(ctx context.Context, a admin.Admin) error {
	rows := make(map[pawl.ID]*row)
	for i := range p.rows {
		rows[p.rows[i].Job.ID] = &p.rows[i]
	}
	if len(rows) == 0 {
		return nil
	}
	all, err := a.Progress(ctx, slices.Collect(maps.Keys(rows))...)
	if errors.As(err, new(*admin.UnsupportedError)) {
		return nil // the engine stores no progress
	}
	for _, one := range all {
		if r := rows[one.ID]; r != nil {
			r.progress = one.Progress.String()
		}
	}
	return err
}
