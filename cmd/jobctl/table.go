package main

import (
	"bufio"
	"strings"
	"unicode/utf8"
)

// column is the head of one column of a table.
type column struct {
	title string
	right bool // numbers and ages stand at the right; text/tabwriter cannot mix
}

// table aligns rows. It measures a portion of them at a time, so that a list of any
// length takes little memory; later portions may be wider.
type table struct {
	out     *bufio.Writer
	columns []column
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
	if !t.begun {
		t.begun = true
		t.widths = make([]int, len(t.columns))
		head := make([]string, len(t.columns))
		for i, c := range t.columns {
			head[i] = c.title
		}
		t.rows = append([][]string{head}, t.rows...)
	}
	for _, row := range t.rows {
		for i, text := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, row := range t.rows {
		t.out.WriteString(strings.TrimRight(t.line(row), " "))
		t.out.WriteByte('\n')
	}
	t.rows = t.rows[:0]
}

func (t *table) line(row []string) string {
	var b strings.Builder
	for i, text := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(text))
		if t.columns[i].right {
			b.WriteString(pad + text)
		} else {
			b.WriteString(text + pad)
		}
	}
	return b.String()
}
