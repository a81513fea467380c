package main

import (
	"bufio"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// column is the head of one column of a table.
type column struct {
	title string
	right bool                     // numbers and ages stand at the right; text/tabwriter cannot mix
	color func(cell string) string // of a cell; nil: none
}

// left makes columns of texts, without colours.
func left(titles ...string) (columns []column) {
	for _, title := range titles {
		columns = append(columns, column{title: title})
	}
	return columns
}

// table aligns rows. It measures a portion of them at a time, so that a list of any
// length takes little memory; later portions may be wider.
type table struct {
	out     *bufio.Writer
	columns []column
	paint   bool // with colours
	widths  []int
	rows    [][]string
	begun   bool
}

const tablePortion = 500

func (t *table) add(cells ...string) {
	t.rows = append(t.rows, cells)
	if len(t.rows) == tablePortion {
		t.flush()
	}
}

// flush writes the rows so far. A table without a row has no head either.
func (t *table) flush() {
	if len(t.rows) == 0 {
		return
	}
	head := -1
	if !t.begun {
		t.begun = true
		t.widths = make([]int, len(t.columns))
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.title
		}
		t.rows = append([][]string{titles}, t.rows...)
		head = 0
	}
	for _, row := range t.rows {
		for i, text := range row {
			t.widths[i] = max(t.widths[i], ansi.StringWidth(text)) // a character may be two columns wide
		}
	}
	for n, row := range t.rows {
		t.out.WriteString(t.line(row, n == head))
		t.out.WriteByte('\n')
	}
	t.rows = t.rows[:0]
}

// line is a row without spaces at its end. Colours stand around the text of a cell, where
// they do not count for its width.
func (t *table) line(row []string, head bool) string {
	for len(row) > 0 && row[len(row)-1] == "" {
		row = row[:len(row)-1]
	}
	var b strings.Builder
	for i, text := range row {
		pad := strings.Repeat(" ", t.widths[i]-ansi.StringWidth(text))
		if i == len(row)-1 && !t.columns[i].right {
			pad = ""
		}
		if text = t.painted(i, text, head); t.columns[i].right {
			text = pad + text
		} else {
			text += pad
		}
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(text)
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
