package top

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// row returns the index of the line that contains a text, or -1.
func (s *screen) row(text string) int {
	before, _, found := strings.Cut(s.text(), text)
	if !found {
		return -1
	}
	return strings.Count(before, "\n")
}

// The queues come first; the sections share the rest of the screen, if both have room for two
// jobs.
func TestSectionHeight(t *testing.T) {
	cases := []struct {
		rule         string
		body, queues int
		height       int
	}{
		{"three queues need a terminal of sixteen rows", 12, 3, 4},
		{"with one row less they are alone", 11, 3, 0},
		{"more rows are shared", 20, 3, 8},
		{"what cannot be shared stays empty", 21, 3, 8},
		{"many queues take all of it", 20, 15, 0},
		{"without a queue there is a line that says so", 9, 0, 0},
		{"there may be no room at all", 0, 3, 0},
	}
	for _, c := range cases {
		require.Equal(t, c.height, sectionHeight(c.body, c.queues), c.rule)
	}
}

// The first pane reads the beginnings of two lists, as many jobs as it has rows for, even if the
// panes themselves are on a later page; it reads none if it shows none.
func TestOverviewReadsVisibleRows(t *testing.T) {
	f := manyJobs(200, pawl.Dead)
	for _, e := range f.jobs[:100] {
		e.State, e.Death = pawl.Leased, nil
	}
	s := newScreen(t, f, 100, 20)
	s.has("── running 100 – key 2 shows all ──", "── dead 100 – key 4 shows all ──", "…00000000", "…00000064")
	rows := strings.Count(s.text(), "  …000000")
	require.Equal(t, 10, rows)
	require.Equal(t, rows, f.listed)

	s.press("4", "pgdown", "pgdown", "pgdown").lacks("…00000064").press("1").has("…00000000", "…00000064")
	f.listed = 0
	s.tick()
	require.Equal(t, rows, f.listed)

	f.calls = nil
	s.send(tea.WindowSizeMsg{Width: 100, Height: 12})
	s.tick().lacks("shows all", "…000000")
	require.Equal(t, []string{"stats", "stats"}, f.calls)
	s.m.height = 20
	s.has("…00000064") // the old jobs, until they are read again
}

// Changes in one section do not move the other one.
func TestOverviewStandsStill(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 24)
	at := s.row("── dead 4")
	require.Equal(t, 14, at)
	for _, e := range s.queue.jobs {
		if e.State == pawl.Leased {
			e.State = pawl.Ready
		}
	}
	s.tick().has("── running 0 – key 2 shows all ──", "No job runs.")
	require.Equal(t, at, s.row("── dead 4"))
}

// Keys move only among the queues; no key changes a job that the first pane shows.
func TestOverviewSelectsQueues(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 24)
	for _, want := range []string{"email", "reports", "reports"} {
		s.press("j").has("…00000004", "…0000000c")
		require.Equal(t, want, s.selected())
		require.Equal(t, 1, strings.Count(s.text(), "▸"))
	}
	for _, key := range []string{"R", "D", "C", "N"} {
		s.press(key).lacks("y/n")
	}
	s.press("k", "enter").has("[2 running 2]", "/queue=email")
	require.Empty(t, s.queue.changes())
}

// The filter applies to the sections too; a title says that it counts all jobs.
func TestOverviewFilter(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 24)
	s.press("/").write("queue=email").press("enter")
	s.has("── running 2 before the filter – key 2", "…00000005", "…0000000c").lacks("…00000004")
	s.press("/", "ctrl+u").write("mx2").press("enter").has("…0000000b").lacks("…0000000a")
	require.Equal(t, 2, strings.Count(s.text(), "Nothing matches the filter"), "no queue, no job that runs")
	s.press("esc").has("…00000004", "…0000000a").lacks("filter –")

	s.m.setFilter(filter{queue: "email"}) // is not read yet
	s.has("/queue=email").lacks("…000000", "Nothing matches")

	f := manyJobs(2*scanned, pawl.Dead)
	s = newScreen(t, f, 100, 24)
	f.listed = 0
	s.press("/").write("needle").press("enter").has("Nothing here so far; key 4 searches further.").lacks("PgDn")
	require.Equal(t, scanned, f.listed)
}

// Before the first reading nothing is said about jobs; a damaged job is shown as in its pane.
func TestOverviewShowsWhatIsKnown(t *testing.T) {
	f := sampleQueue()
	f.err = pawl.ErrClosed
	s := newScreen(t, f, 100, 24)
	s.has("reading …").lacks("shows all", "No job")
	f.err = nil
	f.damaged = map[pawl.ID]error{testID(9): fmt.Errorf("record: %w", pawl.ErrCorrupt)}
	s.tick().has("damaged", "record: ")
}

// A reading for the first pane is not shown in another pane, or the other way round.
func TestOverviewLateReading(t *testing.T) {
	s := newScreen(t, manyJobs(100, pawl.Dead), 100, 24)
	late := s.m.read() // of the first pane: fewer rows than the pane of the dead has
	s.press("4")
	s.send(late())
	require.Len(t, s.m.lists[deadPane].rows, s.m.rows())
	late = s.m.read()
	s.press("1")
	s.send(late())
	require.Len(t, s.m.glimpses[deadPane].rows, sectionRows(sectionHeight(s.m.bodyHeight(), 1)))
}

// Rule: the number of runs is shown below the queues, if there are any, and on no other pane.
func TestOverviewCountsRuns(t *testing.T) {
	f := manyJobs(3, pawl.Ready)
	s := newScreen(t, f, 80, 24).lacks("runs:")
	f.runs = workflow.Counts{Active: 118, Blocked: 12, Done: 7}
	s.tick()
	s.has("runs: 12 blocked, 118 active, 7 done").press("4").lacks("runs:").press("1").has("runs: 12 blocked")
}

// Rule: pools have lines below the queues, however many there are; the sections keep the rest of the screen, and a
// reading reads what they have room for.
func TestOverviewShowsPools(t *testing.T) {
	f := sampleQueue()
	s := newScreen(t, f, 100, 24)
	s.lacks("leased, queues")
	rows := len(s.m.glimpses[deadPane].rows)
	f.limits = map[string]pawl.Limits{
		"email":   {Pool: pawl.Pool{Name: "gpu\x1b", Running: 4}},
		"reports": {Pool: pawl.Pool{Name: "gpu\x1b", Running: 2}},
	}
	s.tick().has(`  pool gpu\x1b: 1 of 4 leased, queues email, reports (2)`, "── running 2", "── dead 4")
	require.LessOrEqual(t, len(s.m.glimpses[deadPane].rows), rows)
	require.Equal(t, 24, strings.Count(s.text(), "\n"))

	f = manyJobs(40, pawl.Ready)
	f.limits = make(map[string]pawl.Limits)
	for i, e := range f.jobs {
		e.Queue = fmt.Sprint("queue", i)
		f.limits[e.Queue] = pawl.Limits{Pool: pawl.Pool{Name: fmt.Sprint("p", i), Running: 1}}
	}
	s = newScreen(t, f, 100, 24)
	s.has("pool p4: 0 of 1 leased, queues queue4", "and 35 more pools; jobctl stats shows them", "q quit").lacks("pool p5:")
	require.Equal(t, 24, strings.Count(s.text(), "\n"))
	s.send(tea.WindowSizeMsg{Width: 40, Height: 6})
	s.has("q quit").lacks("leased, queues")

	stats, err := f.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, "  40 pools; jobctl stats shows them", ansi.Strip(strings.Join(poolLines(stats.Queues, 3), "\n")))
}
