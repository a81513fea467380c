package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// glimpses are the panes whose first jobs appear below the queues on the first pane if there is
// room, so that one look shows what runs and what is dead.
var glimpses = [...]pane{runningPane, deadPane}

// leastSection is the minimum number of lines of a section: its title, the head of its table and
// two jobs.
const leastSection = 4

// sectionHeight returns how many lines each section has, for the given lines of the body and
// number of queues. It is 0 if there is only room for the queues. It does not depend on the
// number of jobs, which changes every second, so that the sections do not jump.
func sectionHeight(body, queues int) int {
	head, rows := 1, max(queues, 1) // without a queue, a line says so
	height := (body - head - rows) / len(glimpses)
	if height < leastSection {
		return 0
	}
	return height
}

// sectionRows returns how many jobs a section of that many lines shows.
func sectionRows(height int) int { return height - 2 }

// sections returns the lines below that many queues.
func (m *model) sections(queues int) (lines []string) {
	height := sectionHeight(m.bodyHeight(), queues)
	if height == 0 || m.at.IsZero() {
		return nil
	}
	for _, p := range glimpses {
		section := append([]string{m.sectionTitle(p)}, m.jobTable(p, m.glimpses[p], -1, sectionRows(height))...)
		lines = append(lines, section...)
		lines = append(lines, make([]string, height-len(section))...)
	}
	return lines
}

// poolLines returns a line for each pool, for at most a third of that many rows.
func poolLines(queues []pawl.QueueStats, rows int) (lines []string) {
	pools := plain.Pools(queues)
	for i, p := range pools {
		if len(lines) == rows/3-1 && i < len(pools)-1 {
			text := fmt.Sprintf("%d pools; jobctl stats shows them", len(pools))
			if i > 0 {
				text = fmt.Sprintf("and %d more pools; jobctl stats shows them", len(pools)-i)
			}
			return append(lines, faint.Render("  "+text))
		}
		if len(lines) == rows/3 {
			break
		}
		line := "  " + p.String()
		if p.Leased >= p.Most {
			line = yellow.Render(line)
		}
		lines = append(lines, line)
	}
	return lines
}

// sectionTitle shows how many jobs a pane has, and its key.
func (m *model) sectionTitle(p pane) string {
	title := fmt.Sprintf("%s %d", panes[p].title, p.count(m.stats.Queues))
	if !m.filter.empty() {
		title += " before the filter"
	}
	line := faint.Render("── ") + bold.Render(title) + faint.Render(fmt.Sprintf(" – key %d shows all ", p+1))
	return line + faint.Render(strings.Repeat("─", max(m.width-ansi.StringWidth(line), 0)))
}
