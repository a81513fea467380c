package top

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// question is a dangerous action that waits for its confirmation.
type question struct {
	text string    // safe; what the action will do
	done string    // safe; shown afterward
	ids  []pawl.ID // the jobs or runs of the action
	do   func(context.Context, admin.Admin) ([]error, error)
}

// acted is the result of an action.
type acted struct {
	note string
	ids  []pawl.ID // the jobs or runs that it changed
	err  error
}

// act returns the command that carries out a confirmed action.
func (m *model) act(q *question) tea.Cmd {
	return func() tea.Msg {
		var errs []error
		err := m.link.use(m.ctx, func(ctx context.Context, a admin.Admin) (err error) {
			errs, err = q.do(ctx, a)
			return err
		})
		if err != nil {
			return acted{err: err}
		}
		return q.outcome(errs)
	}
}

// outcome summarizes the results. A running job that was asked to end is not a failure.
func (q *question) outcome(errs []error) acted {
	a := acted{note: q.done}
	var failed []error
	asked := 0
	for i, err := range errs {
		switch {
		case errors.Is(err, admin.ErrCancelRequested):
			asked++
		case err != nil:
			failed = append(failed, err)
			continue
		}
		a.ids = append(a.ids, q.ids[i])
	}
	switch n := len(errs); {
	case len(failed) == 1 && n == 1:
		return acted{err: failed[0]}
	case len(failed) > 0:
		a.note, a.err = "", fmt.Errorf("%d of %d could not be changed: %w", len(failed), n, failed[0])
	case asked > 0 && n == 1:
		a.note = "cancel requested; the job ends when its handler returns"
	case asked > 0:
		a.note += fmt.Sprintf("; %d of them are running, and end when their handlers return", asked)
	}
	return a
}

// verbs are the actions on jobs, by their keys.
var verbs = map[string]struct {
	verb   admin.Verb
	ask    string // the question, with the name of the job
	done   string // the state of the job after the action
	states []pawl.State
	refuse string // answer for a job in another state
}{
	"R": {admin.Retry, "Retry %s?", "ready again", []pawl.State{pawl.Dead}, "only a dead job can be retried"},
	"D": {admin.Delete, "Delete %s for good?", "deleted", []pawl.State{pawl.Dead, pawl.Completed}, "only a dead job can be deleted; cancel the job first"},
	"C": {admin.Cancel, "Cancel %s?", "cancelled", []pawl.State{pawl.Ready, pawl.Delayed, pawl.Leased}, "only a waiting or running job can be cancelled"},
	"N": {admin.RunNow, "Run %s now?", "ready", []pawl.State{pawl.Delayed}, "only a delayed job can be run now"},
}

// chosen returns the marked rows of the page, or else the selected row.
func (l *list) chosen(current row) (rows []row) {
	if len(l.marked) == 0 {
		return []row{current}
	}
	for _, one := range l.rows {
		if l.marked[one.Job.ID] {
			rows = append(rows, one)
		}
	}
	return rows
}

// unseen returns the marked rows of other pages.
func (l *list) unseen() (ids []pawl.ID) {
	seen := make(map[pawl.ID]bool)
	for _, one := range l.rows {
		seen[one.Job.ID] = true
	}
	for id := range l.marked {
		if !seen[id] {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b pawl.ID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// row returns the subject of the detail, once it was read.
func (d *detail) row() *row {
	switch {
	case d.run != nil:
		return &row{Listed: pawl.Listed{Job: &pawl.Envelope{ID: d.id}}, run: d.run}
	case d.job != nil:
		return &row{Listed: pawl.Listed{Job: d.job}}
	}
	return nil
}

// askJobs asks whether to apply the verb of a key to jobs. It reports whether the key has a
// verb.
func (m *model) askJobs(key string, rows []row, others []pawl.ID) bool {
	v, ok := verbs[key]
	if !ok {
		return false
	}
	for _, one := range rows {
		if one.Err == nil && !slices.Contains(v.states, one.Job.State) {
			m.say(fmt.Errorf("%s: %s", shortened(one.Job.ID), v.refuse))
			return true
		}
	}
	ids := append(idsOf(rows), others...)
	if len(ids) > admin.MaxIDs {
		m.say(fmt.Errorf("%d jobs are marked, at most %d are changed at a time; use jobctl with filters", len(ids), admin.MaxIDs))
		return true
	}
	name := fmt.Sprintf("%d jobs", len(ids))
	if len(ids) == 1 && len(rows) == 1 {
		e := rows[0].Job
		if name = "job " + shortened(e.ID); rows[0].Err == nil {
			name += fmt.Sprintf(" (%s, queue %s)", plain.Text(e.Kind), plain.Text(e.Queue))
		}
	}
	m.ask(v.ask, name, v.done, ids, func(ctx context.Context, a admin.Admin) ([]error, error) {
		return a.Do(ctx, admin.Action{Verb: v.verb}, ids...)
	})
	return true
}

// ask asks a question about the jobs or runs with a common name. Done is their state after the action.
func (m *model) ask(text, name, done string, ids []pawl.ID, do func(context.Context, admin.Admin) ([]error, error)) {
	are := " are "
	if len(ids) == 1 {
		are = " is "
	}
	m.asked = &question{text: fmt.Sprintf(text, name), done: name + are + done, ids: ids, do: do}
}

func idsOf(rows []row) (ids []pawl.ID) {
	for _, one := range rows {
		ids = append(ids, one.Job.ID)
	}
	return ids
}

// runVerbs are the actions on runs, by their keys.
var runVerbs = map[string]struct {
	ask, done string
	verb      admin.Verb
}{
	"C": {"Cancel %s? It undoes its steps first.", "asked to cancel", admin.Cancel},
	"T": {"Terminate %s without undoing anything?", "asked to terminate", admin.Terminate},
	"R": {"Resume %s?", "resumed", admin.Resume},
}

// askRuns is askJobs for workflow runs.
func (m *model) askRuns(key string, rows []row, others []pawl.ID) bool {
	v, ok := runVerbs[key]
	if !ok {
		return false
	}
	for _, one := range rows {
		if one.run.Status.Ended() {
			m.say(fmt.Errorf("%s: %w", shortened(one.Job.ID), workflow.ErrNotRunning))
			return true
		}
	}
	ids := append(idsOf(rows), others...)
	name := fmt.Sprintf("%d runs", len(ids))
	if len(ids) == 1 && len(rows) == 1 {
		name = fmt.Sprintf("run %s:%s", plain.Text(rows[0].run.Flow), plain.Text(rows[0].run.ID))
	}
	m.ask(v.ask, name, v.done, ids, func(ctx context.Context, a admin.Admin) ([]error, error) {
		return a.Workflows().Do(ctx, admin.RunAction{Verb: v.verb}, ids...)
	})
	return true
}

// askPause asks whether to pause a queue, or to resume it.
func (m *model) askPause(q pawl.QueueStats) {
	name := plain.Text(q.Name)
	text, done, set := "Pause queue %s? Its workers get no job until it is resumed.", "paused", admin.Admin.Pause
	if q.Paused {
		text, done, set = "Resume queue %s?", "resumed", admin.Admin.Resume
	}
	m.asked = &question{
		text: fmt.Sprintf(text, name),
		done: fmt.Sprintf("queue %s is %s", name, done),
		do:   func(ctx context.Context, a admin.Admin) ([]error, error) { return nil, set(a, ctx, q.Name) },
	}
}
