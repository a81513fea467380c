package top

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// The screen from top to bottom: header, panes, the body, which begins with the head of its
// table, status, keys.
const (
	linesAbove = 2
	linesBelow = 2
)

func (m *model) bodyHeight() int { return max(m.height-linesAbove-linesBelow, 0) }

// rows returns how many rows of a table are visible.
func (m *model) rows() int { return max(m.bodyHeight()-1, 0) }

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

// screen returns exactly as many lines as the terminal has, none wider than it.
func (m *model) screen() []string {
	lines := append([]string{m.header(), m.tabs()}, m.body()...)
	for len(lines) < m.height-linesBelow {
		lines = append(lines, "")
	}
	lines = append(lines, m.status(), m.keys())
	lines = lines[:min(len(lines), m.height)]
	for i := range lines {
		lines[i] = cut(lines[i], m.width)
	}
	return lines
}

// header shows the source and how current it is, if there is room.
func (m *model) header() string {
	path := m.stats.Path
	if path == "" {
		path = m.opts.Name
	}
	clock := zone(m.at, m.opts.UTC).Format("15:04:05")
	state, more := green.Render("live"), []string{m.process(), clock, m.size()}
	switch {
	case m.at.IsZero():
		state, more = faint.Render("reading …"), nil
	case m.live:
	case m.err != nil:
		state, more = red.Render("NOT CURRENT")+" – as it was at "+clock, nil
	default:
		state, more = yellow.Render("STOPPED")+" – snapshot of "+clock, []string{"r reads again", m.size()}
	}
	line := bold.Render(plain.Text(path)) + "  " + state
	if ansi.StringWidth(line+strings.Join(more, "  "))+2*len(more) > m.width {
		line = bold.Render(plain.Text(filepath.Base(path))) + "  " + state
	}
	for _, part := range more {
		if part != "" && ansi.StringWidth(line)+2+ansi.StringWidth(part) <= m.width {
			line += "  " + part
		}
	}
	return line
}

func (m *model) process() string {
	switch p := m.stats.Process; {
	case p == nil:
		return ""
	case p.PID == 0: // several processes have the queue open
		return plain.Text(p.Name)
	default:
		return fmt.Sprintf("%s (pid %d)", plain.Text(p.Name), p.PID)
	}
}

func (m *model) size() string {
	if m.stats.Free < 0 {
		return plain.Size(m.stats.Size)
	}
	return fmt.Sprintf("%s (%s free)", plain.Size(m.stats.Size), plain.Size(m.stats.Free))
}

// tabs shows the panes, with how many jobs each has, and the filter.
func (m *model) tabs() string {
	line := m.tabLine(true)
	if ansi.StringWidth(line) > m.width {
		line = m.tabLine(false)
	}
	if !m.filter.empty() {
		line += "  " + yellow.Render("/"+plain.Text(m.filter.String()))
	}
	return line
}

// tabLine includes the keys of the panes if there is room for them.
func (m *model) tabLine(keys bool) string {
	var line strings.Builder
	for i, p := range panes {
		if pane(i) == runsPane && m.pane != runsPane && m.runs == (workflow.Counts{}) {
			continue // most files have no workflows; the key still works
		}
		title := p.title
		if keys {
			title = fmt.Sprintf("%d %s", i+1, title)
		}
		if pane(i) != queuesPane {
			title += fmt.Sprintf(" %d", m.count(pane(i)))
		}
		if pane(i) == m.pane {
			line.WriteString(bold.Inherit(cyan).Render("[" + title + "]"))
		} else {
			line.WriteString(" " + title + " ")
		}
	}
	return line.String()
}

// count returns how many jobs, or open runs, a pane has.
func (m *model) count(p pane) int {
	if p == runsPane {
		return openRuns(m.runs)
	}
	return p.count(m.stats.Queues)
}

// body returns the help, the detail of a job or a run, or the pane.
func (m *model) body() []string {
	height := m.bodyHeight()
	switch {
	case m.help != nil:
		return m.help.view(m.width, height)
	case m.detail != nil && m.detail.job == nil && m.detail.run == nil:
		return nil
	case m.detail != nil:
		return m.detail.view(m.width, height)
	case m.pane == queuesPane:
		pools := poolLines(m.stats.Queues, m.rows())
		lines := append(m.queueTable(m.rows()-len(pools)), pools...)
		return append(lines, m.sections(len(m.queues())+len(pools))...)
	}
	l := m.lists[m.pane]
	return m.jobTable(m.pane, l, l.at, m.rows())
}

// queueTable returns that many rows of the queues.
func (m *model) queueTable(rows int) []string {
	queues := m.queues()
	if len(queues) == 0 {
		return m.nothing(queuesPane, list{known: true})
	}
	return m.table(queueColumns, len(queues), m.queueRowAt(queues), rows, nil, func(i int) []cell { return m.queueRow(queues[i]) })
}

// jobTable returns that many rows of a list of a pane.
func (m *model) jobTable(p pane, l list, selected, rows int) []string {
	if len(l.rows) == 0 {
		return m.nothing(p, l)
	}
	marked := func(i int) bool { return l.marked[l.rows[i].Job.ID] }
	if p == runsPane {
		return m.table(runColumns, len(l.rows), selected, rows, marked, func(i int) []cell { return m.runRow(l.rows[i].run) })
	}
	return m.table(jobColumns[p], len(l.rows), selected, rows, marked, func(i int) []cell { return m.jobRow(p, l.rows[i]) })
}

// table draws that many of the n rows, around the selected row; -1 means none.
func (m *model) table(columns []column, n, selected, visible int, marked func(int) bool, row func(int) []cell) []string {
	from := max(min(selected-visible/2, n-visible), 0)
	var rows [][]cell
	for i := from; i < min(from+visible, n); i++ {
		rows = append(rows, row(i))
	}
	var marks func(int) bool
	if marked != nil {
		marks = func(i int) bool { return marked(from + i) }
	}
	head, lines := table(columns, rows, selected-from, marks, m.width)
	return append([]string{head}, lines...)
}

// nothing returns why there is no row.
func (m *model) nothing(p pane, l list) []string {
	why := panes[p].empty
	switch {
	case m.at.IsZero() || !l.known:
		why = ""
	case l.next != nil && p != m.pane:
		why = fmt.Sprintf("Nothing here so far; key %d searches further.", p+1)
	case l.seeking:
		why = "Nothing here so far; the search continues."
	case !m.filter.empty():
		why = "Nothing matches the filter; Esc removes it."
	}
	return []string{"", "  " + faint.Render(why)}
}

// status returns one line: a question, the typed text, an error, the result of an action, the
// position in the list, or below the queues the number of runs.
func (m *model) status() string {
	switch {
	case m.asked != nil:
		// The key to press must be visible, however long the names are.
		const answer = " y/n "
		return yellow.Render(cut(m.asked.text, m.width-len(answer)) + answer)
	case m.failed != nil:
		return red.Render(message(m.failed))
	case m.typing != nil:
		text := "/" + plain.Text(*m.typing)
		return ansi.TruncateLeft(text, max(ansi.StringWidth(text)-m.width+1, 0), "") + reverse.Render(" ")
	case m.err != nil:
		return red.Render(message(m.err))
	case m.note != "":
		return green.Render(m.note)
	case m.help != nil:
		return m.place(m.help)
	case m.detail != nil && errors.Is(m.detail.err, workflow.ErrNotFound):
		return yellow.Render("the run has ended and was removed")
	case m.detail != nil && errors.Is(m.detail.err, pawl.ErrNotFound):
		return yellow.Render("the job is done and gone, or deleted")
	case m.detail != nil && m.detail.err != nil:
		return red.Render(message(m.detail.err))
	case m.detail != nil:
		return m.place(&m.detail.pager)
	case m.pane == queuesPane && m.sort != 0:
		return faint.Render("sorted by " + queueOrders[m.sort].name + "; s changes the order")
	case m.pane == queuesPane:
		return m.runLine()
	}
	return faint.Render(m.page())
}

// message returns an error on one line.
func message(err error) string {
	return "error: " + plain.Text(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// place returns how much of a text is still below the screen.
func (m *model) place(p *pager) string {
	below := len(p.wrapped(m.width)) - max(p.from, 0) - m.bodyHeight()
	if below <= 0 {
		return faint.Render(p.title)
	}
	return faint.Render(fmt.Sprintf("%d more below – %s", below, p.title))
}

// runLine returns how many workflow runs there are, if any.
func (m *model) runLine() string {
	bad, others := plain.Runs(m.runs)
	if bad+others == "" {
		return ""
	}
	if bad != "" {
		bad = red.Render(bad)
	}
	return "runs: " + bad + others
}

// page returns the position of this page in the list.
func (m *model) page() string {
	l := m.lists[m.pane]
	text := ""
	switch before := len(l.pages); {
	case l.seeking:
		return fmt.Sprintf("searching: %d found among %d so far", len(l.rows), l.looked)
	case before == 0 && l.next == nil:
	case l.next == nil:
		text = fmt.Sprintf("page %d, the last", before+1)
	default:
		text = fmt.Sprintf("page %d, more below", before+1)
	}
	if l.costly() {
		text += fmt.Sprintf("; %d found among %d, r searches again", len(l.rows), l.looked)
	}
	if n := len(l.marked); n > 0 {
		text += fmt.Sprintf("; %d marked, esc unmarks them", n)
	}
	return strings.TrimPrefix(text, "; ")
}

// keys lists as many keys as there is room for.
func (m *model) keys() string {
	hints := []string{"q quit", "? help"}
	switch {
	case m.asked != nil:
		hints = []string{"y yes", "any other key: no"}
	case m.typing != nil:
		hints = []string{"enter filter", "esc leave it"}
	case m.help != nil:
		hints = append(hints, "esc back")
	case m.detail != nil:
		hints = append(hints, append([]string{"esc back"}, m.verbHints(m.detailPane())...)...)
	case m.pane == queuesPane:
		hints = append(hints, "P pause/resume", "tab pane", "enter jobs", "/ filter", "s sort")
	default:
		hints = append(append(hints, m.verbHints(m.pane)...), "tab pane", "enter detail", "/ filter", "m mark")
	}
	line := ""
	for _, hint := range hints {
		if ansi.StringWidth(line)+len(hint)+2 > m.width && line != "" {
			break
		}
		line += hint + "  "
	}
	return faint.Render(strings.TrimRight(line, " "))
}

func (m *model) verbHints(p pane) []string {
	switch p {
	case runningPane:
		return []string{"C cancel"}
	case waitingPane:
		return []string{"C cancel", "N run now"}
	case deadPane:
		return []string{"R retry", "D delete"}
	case runsPane:
		return []string{"C cancel", "R resume", "T terminate"}
	}
	return nil
}

// detailPane returns the pane that the job of the detail belongs to.
func (m *model) detailPane() pane {
	if m.detail.run != nil {
		return runsPane
	}
	for p := range panes {
		if m.detail.job != nil && slices.Contains(panes[p].states, m.detail.job.State) {
			return pane(p)
		}
	}
	return queuesPane
}
