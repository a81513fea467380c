package top

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// pane is one of the lists.
type pane int

const (
	queuesPane pane = iota
	runningPane
	waitingPane
	deadPane
	runsPane
)

// panes define what each pane shows: the queues, or the jobs in these states, in this order.
var panes = [...]struct {
	title  string
	states []pawl.State
	empty  string
}{
	queuesPane:  {title: "queues", empty: "No job was ever enqueued."},
	runningPane: {"running", []pawl.State{pawl.Leased}, "No job runs."},
	waitingPane: {"waiting", []pawl.State{pawl.Delayed, pawl.Ready}, "No job waits."},
	deadPane:    {"dead", []pawl.State{pawl.Dead}, "No dead jobs."},
	runsPane:    {"runs", nil, "There are no workflow runs."},
}

// count returns how many jobs a pane has, in all queues.
func (p pane) count(queues []pawl.QueueStats) int {
	n := 0
	for _, q := range queues {
		for _, state := range panes[p].states {
			n += *driver.CountOf(&q.Counts, state)
		}
	}
	return n
}
