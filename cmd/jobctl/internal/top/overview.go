package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// glimpses are the panes whose first jobs the first pane shows below the queues, where there
// is room, so that one look finds what runs and what is dead.
var glimpses = [...]pane{runningPane, deadPane}

// leastSection is how many lines a section has at the least: its title, the head of its
// table and two jobs.
const leastSection = 4

// sectionHeight is how many lines each section has in a body of so many lines, below so many
// queues; 0 where there is room for the queues alone. It does not depend on how many jobs
// there are, which changes every second: the sections would jump.
func sectionHeight(body, queues int) int {
	head, rows := 1, max(queues, 1) // without a queue there is a line that says so
	height := (body - head - rows) / len(glimpses)
	if height < leastSection {
		return 0
	}
	return height
}

// sectionRows is how many jobs a section of so many lines shows.
func sectionRows(height int) int { return height - 2 }

// sections are the lines below so many queues.
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

// sectionTitle says how many jobs a pane has of which some are below it, and its key.
func (m *model) sectionTitle(p pane) string {
	title := fmt.Sprintf("%s %d", panes[p].title, p.count(m.stats.Queues))
	if !m.filter.empty() {
		title += " before the filter"
	}
	line := faint.Render("── ") + bold.Render(title) + faint.Render(fmt.Sprintf(" – key %d shows all ", p+1))
	return line + faint.Render(strings.Repeat("─", max(m.width-ansi.StringWidth(line), 0)))
}
