package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Table writes a Markdown table and an empty line. The first row is the header; the alignment has a
// letter for each column, l or r.
func Table(w io.Writer, alignment string, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
	}
	Align(rows, alignment)
	rule := make([]string, len(rows[0]))
	for i, cell := range rows[0] {
		rule[i] = strings.Repeat("-", utf8.RuneCountInString(cell)+1)
		if alignment[i] == 'r' {
			rule[i] += ":"
		} else {
			rule[i] += "-"
		}
	}
	for i, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s|\n", strings.Join(rule, "|"))
		}
	}
	fmt.Fprintln(w)
}

// Align pads the cells of each column to one width. The alignment has a letter for each column, l or r.
func Align(rows [][]string, alignment string) {
	for i := range alignment {
		width := 0
		for _, row := range rows {
			width = max(width, utf8.RuneCountInString(row[i]))
		}
		for _, row := range rows {
			space := strings.Repeat(" ", width-utf8.RuneCountInString(row[i]))
			if alignment[i] == 'r' {
				row[i] = space + row[i]
			} else {
				row[i] += space
			}
		}
	}
}

// Fold writes text in lines of at most 90 characters. The first begins with the mark; the others are
// indented to its width.
func Fold(w io.Writer, mark, text string) {
	const width = 90
	line := mark
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line+word) > width && strings.TrimSpace(line) != strings.TrimSpace(mark) {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len(mark))
		}
		line += word + " "
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// OneLine returns the text of an error on one line.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Number formats a figure with three digits, or with all digits if it is larger, grouped by thousands.
func Number(v float64) string {
	size := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case size < 0.09995:
		return fmt.Sprintf("%.3g", v)
	case size < 0.9995:
		return fmt.Sprintf("%.3f", v)
	case size < 9.995:
		return fmt.Sprintf("%.2f", v)
	case size < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", size)
	var text strings.Builder
	if v < 0 {
		text.WriteByte('-')
	}
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && len(digits) > 4 {
			text.WriteRune('\u00a0') // no-break space
		}
		text.WriteRune(digit)
	}
	return text.String()
}
