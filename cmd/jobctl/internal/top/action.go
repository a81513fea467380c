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
)

// question is a dangerous action that waits for its confirmation.
type question struct {
	text string // safe; what will be done
	done string // safe; said when it was
	do   func(context.Context, admin.Admin) error
}

// acted says what became of an action.
type acted struct {
	note string
	err  error
}

// act is the command that carries out what was confirmed.
func (m *model) act(q *question) tea.Cmd {
	return func() tea.Msg {
		err := m.link.use(m.ctx, q.do)
		return acted{q.done, err}
	}
}

// verbs are the actions on jobs, by their keys.
var verbs = map[string]struct {
	verb   admin.Verb
	ask    string // with the job
	done   string // with the job
	states []pawl.State
	refuse string // for a job in another state
}{
	"R": {admin.Retry, "Retry %s?", "%s is ready again", []pawl.State{pawl.Dead}, "only a dead letter can be retried"},
	"D": {admin.Delete, "Delete %s for good?", "%s is deleted", []pawl.State{pawl.Dead, pawl.Completed}, "only a dead letter can be deleted; cancel the job first"},
	"C": {admin.Cancel, "Cancel %s?", "%s is cancelled", []pawl.State{pawl.Ready, pawl.Delayed, pawl.Parked, pawl.Leased}, "only a job that waits or runs can be cancelled"},
	"N": {admin.RunNow, "Run %s now?", "%s is ready", []pawl.State{pawl.Delayed, pawl.Parked}, "only a delayed or a parked job can be run now"},
}

// askVerb asks whether to do what a key stands for to a job.
func (m *model) askVerb(key string, e *pawl.Envelope, damaged error) {
	v := verbs[key]
	if damaged == nil && !slices.Contains(v.states, e.State) {
		m.say(fmt.Errorf("%s: %s", shortened(e.ID), v.refuse))
		return
	}
	name := "job " + shortened(e.ID)
	if damaged == nil {
		name += fmt.Sprintf(" (%s, queue %s)", plain.Text(e.Kind), plain.Text(e.Queue))
	}
	id := e.ID
	m.asked = &question{
		text: fmt.Sprintf(v.ask, name),
		done: fmt.Sprintf(v.done, name),
		do: func(ctx context.Context, a admin.Admin) error {
			errs, err := a.Do(ctx, admin.Action{Verb: v.verb}, id)
			return errors.Join(append(errs, err)...)
		},
	}
}

// askPause asks whether to pause a queue, or to resume it.
func (m *model) askPause(q pawl.QueueStats) {
	name := plain.Text(q.Name)
	m.asked = &question{
		text: fmt.Sprintf("Pause queue %s? Its workers get no job until it is resumed.", name),
		done: fmt.Sprintf("queue %s is paused", name),
		do:   func(ctx context.Context, a admin.Admin) error { return a.Pause(ctx, q.Name) },
	}
	if q.Paused {
		m.asked = &question{
			text: fmt.Sprintf("Resume queue %s?", name),
			done: fmt.Sprintf("queue %s is resumed", name),
			do:   func(ctx context.Context, a admin.Admin) error { return a.Resume(ctx, q.Name) },
		}
	}
}
