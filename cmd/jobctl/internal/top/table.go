package top

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// column is a column of a table that fits itself into the available width.
type column struct {
	title string
	right bool // numbers and ages are right-aligned, and never cut
	least int  // minimum width in columns of the terminal
	tail  bool // keep the end of a text that is too long
	rank  int  // without enough room, columns of the highest rank go first; 0 stays
}

// cell is a text of a table. The table makes it safe.
type cell struct {
	text  string
	style lipgloss.Style
}

func text(s string) cell { return cell{s, unstyled} }

// The prefix of a row. The selected row has an arrow, because colors alone are not visible
// everywhere.
const (
	marker       = "▸ "
	plainRow     = "  "
	markedRow    = " •"
	markedMarker = "▸•"
	gap          = 2
)

// table lays out rows: the head, and a line for each row, none wider than width. marked reports
// which rows are marked; nil: none.
func table(columns []column, rows [][]cell, selected int, marked func(i int) bool, width int) (head string, lines []string) {
	columns, rows = slices.Clone(columns), slices.Clone(rows)
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for j := range row {
			rows[i][j].text = plain.Text(row[j].text)
		}
	}
	for i := range columns {
		if columns[i].right { // a truncated number would mean something else
			for _, row := range rows {
				columns[i].least = max(columns[i].least, ansi.StringWidth(row[i].text))
			}
		}
	}
	for room(columns) > width {
		last := 0
		for i, c := range columns {
			if c.rank >= columns[last].rank {
				last = i
			}
		}
		if columns[last].rank == 0 {
			break // the line is then cut at the right
		}
		columns = slices.Delete(columns, last, last+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], last, last+1)
		}
	}
	widths := spread(columns, rows, width)
	titles := make([]cell, len(columns))
	for i, c := range columns {
		titles[i] = cell{c.title, faint}
	}
	head = tableLine(columns, widths, titles, plainRow, width)
	for i, row := range rows {
		before, arrow := plainRow, marker
		if marked != nil && marked(i) {
			before, arrow = markedRow, markedMarker
		}
		if i == selected {
			before = arrow
			for j := range row {
				if !columns[j].tail { // a drawing is indistinguishable from its background when reversed
					row[j].style = reverse
				}
			}
		}
		lines = append(lines, tableLine(columns, widths, row, before, width))
	}
	return head, lines
}

// room returns the minimum width of the columns.
func room(columns []column) int {
	n := len(marker) - len("▸") + 1 - gap
	for _, c := range columns {
		n += c.least + gap
	}
	return n
}

// spread gives each column the width of its widest text, and takes the excess from the widest
// columns.
func spread(columns []column, rows [][]cell, width int) []int {
	widths := make([]int, len(columns))
	total := gap * len(columns) // one gap less than columns, and the marker
	for i, c := range columns {
		widths[i] = max(c.least, ansi.StringWidth(c.title))
		for _, row := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i].text))
		}
		total += widths[i]
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range columns {
			if widths[i] > c.least && (widest < 0 || widths[i] >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func tableLine(columns []column, widths []int, row []cell, mark string, width int) string {
	var b strings.Builder
	ground := unstyled
	if mark == marker || mark == markedMarker {
		ground = reverse
	}
	b.WriteString(ground.Render(mark))
	for i, c := range columns {
		if i > 0 {
			b.WriteString(ground.Render(strings.Repeat(" ", gap)))
		}
		field := row[i].text
		if c.tail {
			field = ansi.TruncateLeft(field, max(ansi.StringWidth(field)-widths[i], 0), "")
		}
		space := pad(field, widths[i])
		if field = cut(field, widths[i]); c.right {
			field = space + field
		} else {
			field += space
		}
		b.WriteString(row[i].style.Render(field))
	}
	return cut(b.String(), width)
}
