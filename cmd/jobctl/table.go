package main

import (
	"bufio"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// column describes one column of a table.
type column struct {
	title string
	right bool                     // numbers and ages are right-aligned; text/tabwriter cannot mix alignments
	color func(cell string) string // color of a cell; nil: none

	// What happens on a screen that is too narrow.
	spare int  // the column is left out, 1 before 2; 0: it stays
	cut   cuts // how its cells are shortened
}

// cuts is how to shorten a text.
type cuts int

const (
	uncut  cuts = iota
	middle      // a name: its end also distinguishes it
	end         // a sentence
)

// leastCut is the minimum width of a shortened column. Sentences are cut before names.
var leastCut = map[cuts]int{end: 12, middle: 8}

// left returns columns of text without colors.
func left(titles ...string) (columns []column) {
	for _, title := range titles {
		columns = append(columns, column{title: title})
	}
	return columns
}

// table aligns rows. It measures a portion of them at a time, so that a list of any length takes
// little memory; later portions may be wider. On a screen it fits the table into the width as
// well as possible.
type table struct {
	out     *bufio.Writer
	columns []column
	paint   bool // use colors
	fit     int  // columns of the screen; 0: no limit
	widths  []int
	hidden  []bool // columns that are left out
	limits  []int  // maximum widths of columns, 0 for any width
	rows    [][]string
	begun   bool
}

// table returns a table that fits the screen, unless -o wide asks for everything.
func (a *app) table(columns ...column) table {
	t := table{out: a.stdout, columns: columns, paint: a.colors()}
	if !a.wide() {
		t.fit = a.width
	}
	return t
}

const tablePortion = 500

// add adds a row. Cells beyond the last column are those of -o wide.
func (t *table) add(cells ...string) {
	t.rows = append(t.rows, cells[:min(len(cells), len(t.columns))])
	if len(t.rows) == tablePortion {
		t.flush()
	}
}

// flush writes the rows so far. A table without rows has no head either.
func (t *table) flush() {
	if len(t.rows) == 0 {
		return
	}
	head := -1
	if !t.begun {
		t.begun = true
		t.widths, t.limits, t.hidden = make([]int, len(t.columns)), make([]int, len(t.columns)), make([]bool, len(t.columns))
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.title
		}
		t.rows = append([][]string{titles}, t.rows...)
		head = 0
	}
	for _, row := range t.rows {
		for i, text := range row {
			t.widths[i] = max(t.widths[i], ansi.StringWidth(text)) // a character may take two columns
			if t.limits[i] > 0 {
				t.widths[i] = t.limits[i]
			}
		}
	}
	if head == 0 && t.fit > 0 {
		t.squeeze()
	}
	for n, row := range t.rows {
		t.out.WriteString(t.line(row, n == head))
		t.out.WriteByte('\n')
	}
	t.rows = t.rows[:0]
}

// squeeze leaves out columns and shortens others until the table fits, or nothing more can be
// shortened.
func (t *table) squeeze() {
	over := -2 - t.fit
	for _, width := range t.widths {
		over += width + 2
	}
	for order := 0; order <= len(t.columns) && over > 0; order++ {
		for i, c := range t.columns {
			if order == 0 && t.empty(i) || order > 0 && c.spare == order && !t.hidden[i] {
				t.hidden[i] = true
				over -= t.widths[i] + 2
			}
		}
	}
	for _, how := range [...]cuts{end, middle} {
		for ; over > 0; over-- {
			widest := t.widest(how)
			if widest < 0 {
				break
			}
			t.widths[widest]--
			t.limits[widest] = t.widths[widest]
		}
	}
}

// empty reports whether a column has no value in any row.
func (t *table) empty(column int) bool {
	for _, row := range t.rows[1:] {
		if row[column] != "" && row[column] != "-" {
			return false
		}
	}
	return true
}

// widest returns the widest column that can be shortened in the given way, or -1.
func (t *table) widest(how cuts) int {
	widest := -1
	for i, c := range t.columns {
		if !t.hidden[i] && c.cut == how && t.widths[i] > max(leastCut[how], len(c.title)) && (widest < 0 || t.widths[i] > t.widths[widest]) {
			widest = i
		}
	}
	return widest
}

// shortened shortens a text to at most that many columns.
func shortened(text string, width int, how cuts) string {
	n := ansi.StringWidth(text)
	if n <= width {
		return text
	}
	if how == end {
		return ansi.Truncate(text, width, "…")
	}
	behind := (width - 1) / 2
	return ansi.Truncate(text, width-behind-1, "") + ansi.TruncateLeft(text, n-behind, "…")
}

// line returns a row without trailing spaces. Colors are added around the text of a cell, where
// they do not affect its width.
func (t *table) line(row []string, head bool) string {
	for len(row) > 0 && row[len(row)-1] == "" {
		row = row[:len(row)-1]
	}
	var b strings.Builder
	for i, text := range row {
		if t.hidden[i] {
			continue
		}
		if limit := t.limits[i]; limit > 0 {
			text = shortened(text, limit, t.columns[i].cut)
		}
		pad := strings.Repeat(" ", max(t.widths[i]-ansi.StringWidth(text), 0))
		if i == len(row)-1 && !t.columns[i].right {
			pad = ""
		}
		if text = t.painted(i, text, head); t.columns[i].right {
			text = pad + text
		} else {
			text += pad
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		b.WriteString(text)
	}
	if t.fit > 0 { // the last column may be left out
		return strings.TrimRight(b.String(), " ")
	}
	return b.String()
}

func (t *table) painted(i int, text string, head bool) string {
	color := uncolored
	switch {
	case !t.paint || text == "":
	case head:
		color = bold
	case t.columns[i].color != nil:
		color = t.columns[i].color(text)
	}
	if color == uncolored {
		return text
	}
	return color + text + reset
}

// The colors of a table, by the meaning of its words. Everything else has the terminal's colors.
const (
	uncolored = ""
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	green     = "\x1b[32m"
	bold      = "\x1b[1m"
	reset     = "\x1b[0m"
)

// colors reports whether standard output is colored.
func (a *app) colors() bool { return a.colored(a.screen) }

// colored reports whether a stream is colored. terminal says whether it is a terminal.
func (a *app) colored(terminal bool) bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// colors are the colors of words. Other words have none.
type colors map[string]string

func (c colors) of(word string) string { return c[word] }

// stateColors are the colors of states of jobs and queues.
var stateColors = colors{"dead": red, "PAUSED": red, "leased": green, "served": green, "delayed": yellow, "no worker": yellow}

// colorOfCount highlights a number of things that need attention.
func colorOfCount(text string) string {
	if text == "0" {
		return uncolored
	}
	return red
}
