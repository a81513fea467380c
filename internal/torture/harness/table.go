package harness

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// columns are the columns of the table. A terminal is too narrow for the method, so only the
// document has it.
var columns = []string{"family", "goals", "method", "tried", "asked for", "violations", "rate"}

const methodColumn = 2

// row returns a result in these columns.
func (r *Result) row() []string {
	if r.Missing != "" {
		return []string{r.Name, r.Goals, r.Method, "not tried", Thousands(r.Goal) + " " + r.Unit, "", r.Missing}
	}
	return []string{r.Name, r.Goals, r.Method, Thousands(r.Tried) + " " + r.Unit, Thousands(r.Goal), Thousands(r.Violations), r.rate()}
}

func (r *Result) rate() string {
	if r.Took <= 0 {
		return ""
	}
	perMinute := float64(r.Tried) / r.Took.Minutes()
	return fmt.Sprintf("%s/min", Thousands(int(perMinute)))
}

// Failed reports whether there was a violation.
func (r *Result) Failed() bool { return r.Violations > 0 }

// Short reports whether time was up before the goal.
func (r *Result) Short() bool { return r.Missing == "" && r.Tried < r.Goal }

// Table prints results on a terminal.
func Table(w io.Writer, results []Result) {
	rows := [][]string{columns}
	for i := range results {
		rows = append(rows, results[i].row())
	}
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i == methodColumn {
				continue
			}
			if numeric(i) {
				fmt.Fprintf(&line, "%*s  ", widths[i], cell)
			} else {
				fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// Markdown prints results for a document.
func Markdown(w io.Writer, results []Result) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(columns)
	rule := make([]string, len(columns))
	for i := range rule {
		if rule[i] = "---"; numeric(i) {
			rule[i] = "---:"
		}
	}
	line(rule)
	for i := range results {
		line(results[i].row())
	}
}

// numeric reports whether a column is aligned to the right.
func numeric(column int) bool { return column >= 3 }

// Violations prints each violation, and the command that repeats it.
func Violations(w io.Writer, command string, results []Result) {
	for _, r := range results {
		for _, v := range r.First {
			fmt.Fprintf(w, "\n%s, seed %d: %v\n", r.Name, v.Seed, truncate(v.Err))
			fmt.Fprintf(w, "  repeat: %s -family %s -seed %d\n", command, r.Name, v.Seed)
			if v.Dir != "" {
				fmt.Fprintf(w, "  its files: %s\n", v.Dir)
			}
		}
		if more := r.Violations - len(r.First); more > 0 {
			fmt.Fprintf(w, "\n%s: %d more\n", r.Name, more)
		}
	}
}

// truncate shortens an error for printing: a stack has hundreds of lines.
func truncate(err error) string {
	const most = 30
	lines := strings.Split(err.Error(), "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("... and %d lines more", more))
	}
	return strings.Join(lines, "\n")
}

// Thousands writes a number with spaces between groups of three digits.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Progress prints the progress of families. On a terminal, it is a line that changes.
// Elsewhere, it is one line for each family.
type Progress struct {
	W        io.Writer
	Terminal bool
	last     time.Time
}

// Start returns the OnTry of a Plan.
func (p *Progress) Start(f *Family, goal int) func(tried, violations int) {
	if !p.Terminal {
		fmt.Fprintf(p.W, "%s: %s %s\n", f.Name, Thousands(goal), f.Unit)
		return nil
	}
	begun := time.Now()
	updates := make(chan struct{}, 1)
	return func(tried, violations int) {
		select {
		case updates <- struct{}{}:
		default:
			return // another try is printing
		}
		if time.Since(p.last) > time.Second/10 {
			p.last = time.Now()
			fmt.Fprintf(p.W, "\r\033[K%s  %s of %s %s  %d violations  %s", f.Name, Thousands(tried), Thousands(goal), f.Unit,
				violations, time.Since(begun).Round(time.Second))
		}
		<-updates
	}
}

// Done ends what Start began.
func (p *Progress) Done() {
	if p.Terminal {
		fmt.Fprint(p.W, "\r\033[K")
	}
}
