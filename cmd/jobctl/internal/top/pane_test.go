package top

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a search continues by itself to the end, or until the page is full; it finds every match
// once, even if keys are pressed in between.
func TestSearchGoesOnToTheEnd(t *testing.T) {
	f := manyJobs(12*scanned, pawl.Dead)
	for n := range 12 {
		f.jobs[n*scanned+7].Kind = "needle"
	}
	s := newScreen(t, f, 100, 30)
	s.press("4", "/").write("needle").press("enter")
	require.Len(t, s.m.lists[deadPane].rows, 12)
	for n, row := range s.m.lists[deadPane].rows {
		require.Equal(t, testID(n*scanned+7), row.Job.ID)
	}

	// Message by message: matches are shown as they are found, and a key does not end the
	// search.
	s = newScreen(t, f, 100, 30)
	s.press("4", "/").write("needle")
	_, read := s.m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	for found := 1; read != nil; found++ {
		_, read = s.m.Update(read())
		require.Len(t, s.m.lists[deadPane].rows, found)
		if read != nil {
			s.has(fmt.Sprintf("searching: %d found among %d so far", found, found*scanned))
			s.m.Update(tea.KeyPressMsg{Code: 'j', Text: "j"})
		}
	}
	require.Len(t, s.m.lists[deadPane].rows, 12)
	require.Equal(t, shortened(testID(10*scanned+7)), s.selected(), "one row down for each key")
}

// Rule: a number is never shortened: without enough room, columns go, and the digits stay.
func TestNumbersKeepTheirDigits(t *testing.T) {
	for _, width := range []int{130, 80, 60, 40} {
		s := newScreen(t, sampleQueue(), width, 24)
		s.m.stats.Queues = []pawl.QueueStats{{Name: strings.Repeat("queue", 20), Counts: pawl.Counts{Ready: 22_712_345, Delayed: 1_234_567, Leased: 10_000, Dead: 9_876_543}}}
		s.has(" 22712345 ", " 9876543 ")
		require.NotRegexp(t, `\d…`, strings.Split(s.text(), "\n")[3], "the line of the queue")
	}
}

// Rule: the next action applies to the marked rows, on all pages, and only after a yes.
func TestMarkedRows(t *testing.T) {
	s := newScreen(t, manyJobs(40, pawl.Dead), 100, 20)
	s.press("4", "m", "j", "m").has(" •…00000000", " •…00000002", "2 marked, esc unmarks them").lacks("•…00000001")
	s.press("end", "j").has("page 2").press("m")
	s.press("D").has("Delete 3 jobs for good?", "y/n")
	require.Empty(t, s.queue.changes())
	s.press("y").has("3 jobs are deleted").lacks("marked")
	require.ElementsMatch(t, []string{"delete …00000000", "delete …00000002", "delete …0000000f"}, s.queue.changes())

	s = newScreen(t, manyJobs(40, pawl.Dead), 100, 20)
	s.press("4", "M").has("15 marked").press("R").has("Retry 15 jobs?").press("n").has("nothing was changed").press("esc").lacks("marked")
	s.press("m", "k", "m").lacks("marked") // the second time takes the mark away
	require.Empty(t, s.queue.changes())
}

// Rule: a running job that was only asked to end is not shown as cancelled.
func TestCancelOfRunningJobIsShown(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 20)
	s.queue.doErr = admin.ErrCancelRequested
	s.press("2", "C", "y").has("cancel requested; the job ends when its handler returns").lacks("is cancelled")
}

// Rule: s sorts the queues by the next order, and names it.
func TestQueuesAreSorted(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 20)
	order := func() (names []string) {
		for _, q := range s.m.queues() {
			names = append(names, q.Name)
		}
		return names
	}
	for _, want := range []struct {
		by    string
		names []string
	}{
		{"ready", []string{"default", "email", "reports"}}, {"dead", []string{"email", "default", "reports"}},
		{"oldest", []string{"reports", "email", "default"}}, {"name", []string{"default", "email", "reports"}},
	} {
		s.press("s").has("sorted by " + want.by)
		require.Equal(t, want.names, order(), want.by)
	}
	s.press("s").lacks("sorted by")
}

// Rule: workflow runs have a pane: runs that need attention come first, a run is shown with its
// journal, and verbs ask before they act.
func TestRunsPane(t *testing.T) {
	f := sampleQueue()
	f.runs = workflow.Counts{Active: 2, Blocked: 1, Done: 1}
	for n, run := range []workflow.Info{
		{Flow: "order", ID: "1", Status: workflow.Done, Ended: noon},
		{Flow: "order", ID: "2", Status: workflow.Waiting, Due: noon.Add(time.Hour), Waits: []string{"approved"}},
		{Flow: "order", ID: "3", Status: workflow.Blocked, Error: "no step \"charge\""},
		{Flow: "nap", ID: "4", Status: workflow.Sleeping, Cancelling: "why"},
	} {
		run.Run, run.Queue, run.Created = testID(100+n), "default", noon.Add(-time.Hour)
		f.flows = append(f.flows, run)
	}
	s := newScreen(t, f, 110, 24)
	s.has("5 runs 3").press("5").has("[5 runs 3]", "FLOW", "in 1h", "no step", "sleeping, cancel requested")
	rows := []string{}
	for _, row := range s.m.lists[runsPane].rows {
		rows = append(rows, row.run.ID)
	}
	require.Equal(t, []string{"3", "2", "4", "1"}, rows)
	s.press("C").has("Cancel run order:3? It undoes its steps first.").press("n")
	s.press("T").has("Terminate run order:3 without undoing anything?").press("y").has("run order:3 is asked to terminate")
	s.press("R", "y").has("run order:3 is resumed")
	s.press("end", "C").has("has ended").lacks("y/n")
	s.press("home", "enter").has("flow        order", "status      blocked", "charge", "run "+testID(102).String())
	s.press("C", "y").has("asked to cancel").press("esc").has("[5 runs 3]")
	require.Equal(t, []string{"terminate run …00000066", "resume run …00000066", "cancel run …00000066"}, slices.DeleteFunc(f.changes(), func(call string) bool { return call == "runs" }))
	s.press("/").write("nap").press("enter").has("nap").lacks("order")
	s.press("esc", "m", "m", "R").has("Resume 2 runs?").press("n")
	for _, width := range []int{80, 40} {
		s.send(tea.WindowSizeMsg{Width: width, Height: 24})
		s.has("order", "blocked")
	}
	s.send(tea.WindowSizeMsg{Width: 110, Height: 24})
	s.press("tab").has("[1 queues]")
}

// Rule: a running job shows how far it is, unless it is cancelled.
func TestRunningJobsShowTheirProgress(t *testing.T) {
	f := sampleQueue()
	f.progress = map[pawl.ID]pawl.Progress{testID(4): {Done: 41, Total: 100}, testID(5): {Done: 7}}
	newScreen(t, f, 130, 30).press("2").has(" 41/100 41%", " cancelled ")
}
