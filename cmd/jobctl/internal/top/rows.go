package top

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// sparkWidth is how many readings the trend shows if there is room.
const sparkWidth = 20

var queueColumns = []column{
	{title: "QUEUE", least: 8},
	{title: "READY", right: true, least: 5},
	{title: "DELAYED", right: true, least: 7, rank: 2},
	{title: "LEASED", right: true, least: 6, rank: 1},
	{title: "DEAD", right: true, least: 4},
	{title: "OLDEST", right: true, least: 6, rank: 3},
	{title: "STATE", least: 9},
	{title: "RUNS/S", right: true, least: 6, rank: 4},
	{title: "FAIL/S", right: true, least: 6, rank: 6},
	{title: "TREND", least: 10, rank: 5, tail: true},
}

// queueRow returns a queue for the columns above.
func (m *model) queueRow(q pawl.QueueStats) []cell {
	state, oldest := cell{plain.QueueState(&q, m.live), green}, text("-")
	switch {
	case q.Paused, !q.Rests.IsZero(), m.live && !q.Served:
		state.style = yellow
	case !m.live:
		state.style = faint
	}
	if _, full := plain.Backlog(&q); full {
		state.text += ", full"
	}
	if !q.Oldest.IsZero() {
		oldest = text(plain.Span(m.at.Sub(q.Oldest)))
	}
	runs, failing := text("-"), text("-")
	if mean, ok := m.rates.mean(q.Name); ok {
		runs, failing = text(perSecond(mean.runs)), text(perSecond(mean.failed))
		if mean.failed > 0 {
			failing.style = red
		}
	}
	dead := text(strconv.Itoa(q.Dead))
	if q.Dead > 0 {
		dead.style = red
	}
	return []cell{
		text(q.Name), text(strconv.Itoa(q.Ready)), text(strconv.Itoa(q.Delayed)),
		text(strconv.Itoa(q.Leased)), dead, oldest, state, runs, failing,
		{m.rates.sparkline(q.Name, sparkWidth), cyan},
	}
}

var jobColumns = [...][]column{
	runningPane: {
		{title: "JOB", least: shortID, rank: 2},
		{title: "QUEUE", least: 6, rank: 1},
		{title: "KIND", least: 8},
		{title: "ATTEMPT", right: true, least: 7},
		{title: "AGE", right: true, least: 6},
		{title: "", least: 9, rank: 3},
		{title: "LAST ERROR", least: 16, rank: 4},
	},
	waitingPane: {
		{title: "JOB", least: shortID, rank: 2},
		{title: "QUEUE", least: 6, rank: 1},
		{title: "KIND", least: 8},
		{title: "STATE", least: 7},
		{title: "WAITS", right: true, least: 8},
		{title: "ATTEMPT", right: true, least: 7, rank: 3},
		{title: "LAST ERROR", least: 16, rank: 4},
	},
	deadPane: {
		{title: "JOB", least: shortID, rank: 4},
		{title: "QUEUE", least: 6, rank: 2},
		{title: "KIND", least: 8},
		{title: "DIED", right: true, least: 6, rank: 1},
		{title: "RUNS", right: true, least: 4, rank: 5},
		{title: "REASON", least: 9, rank: 3},
		{title: "LAST ERROR", least: 12},
	},
}

// jobRow returns a job for the columns of a pane.
func (m *model) jobRow(p pane, job row) []cell {
	e := job.Job
	id := text(shortened(e.ID))
	if job.Err != nil {
		row := make([]cell, len(jobColumns[p]))
		row[0], row[2], row[len(row)-1] = id, cell{"damaged", red}, cell{firstLine(job.Err.Error()), red}
		return row
	}
	failed := cell{firstLine(e.LastError()), faint}
	attempt := text(fmt.Sprintf("%d of %d", e.Attempt(), e.MaxRetries+1))
	switch p {
	case runningPane:
		state := text(job.progress)
		if e.Cancelled {
			state = cell{"cancelled", yellow}
		}
		return []cell{id, text(e.Queue), text(e.Kind), attempt, text(plain.Span(m.at.Sub(e.LeasedSince))), state, failed}
	case waitingPane:
		return []cell{id, text(e.Queue), text(e.Kind), text(string(e.State)), text(m.waits(e)), attempt, failed}
	}
	reason, died := cell{"unknown", red}, "-"
	if e.Death != nil {
		reason.text, died = string(e.Death.Reason), plain.Span(m.at.Sub(e.Death.At))
	}
	return []cell{id, text(e.Queue), text(e.Kind), text(died), text(strconv.Itoa(e.Attempts)), reason, failed}
}

// waits returns how long a job still waits if it has a time, and otherwise how long it has
// waited.
func (m *model) waits(e *pawl.Envelope) string {
	since := e.NotBefore
	if since.IsZero() {
		since = e.Created
	}
	if d := since.Sub(m.at); d > 0 {
		return "in " + plain.Span(d+time.Second-1) // never "in 0s"
	}
	return plain.Span(m.at.Sub(since))
}

// shortID is how much of an ID a table shows: its random end. The beginning is a time and nearly
// equal in jobs of one hour.
const shortID = 9

func shortened(id pawl.ID) string {
	s := id.String()
	return "…" + s[len(s)-shortID+1:]
}
