package workflows

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/gopawl/pawl/bench/report"
)

// comparison is a run with all that its report needs.
type comparison struct {
	results  report.Results
	engines  []engine
	size     size
	failed   []failure
	untraced error
	load     string // of the machine before the run
}

// own is the failure of this library, if it failed; peers may.
func (r comparison) own() error {
	var all []error
	for _, f := range r.failed {
		if f.engine == pawlName {
			all = append(all, f)
		}
	}
	return errors.Join(all...)
}

// alignment is that of the columns of rows.
const alignment = "lrrrrrrrrrrl"

// rows are the figures with so many callers, below a header.
func (r comparison) rows(callers int) [][]string {
	rows := [][]string{{"", "workflows/s", "min", "max", "pawl/this", "p50 ms", "p99 ms", "CPU ms", "syncs", "file KiB", "memory MiB", "promise"}}
	for _, e := range r.engines {
		row := []string{e.name}
		for _, u := range units {
			one := r.find(e.name, callers, u.metric)
			if one == nil {
				row = append(row, "")
			} else {
				row = append(row, report.Number(one.Value))
			}
			if u.metric != throughput {
				continue
			}
			if one == nil {
				row = append(row, "", "", "")
				continue
			}
			times := ""
			if ratio, ok := r.ratio(e.name, callers, throughput); ok && e.name != pawlName {
				times = report.Number(ratio) + "x"
			}
			row = append(row, report.Number(one.Min), report.Number(one.Max), times)
		}
		rows = append(rows, append(row, e.promise()))
	}
	return rows
}

// table shows a run on a terminal.
func (r comparison) table(w io.Writer) {
	for _, callers := range r.size.callers {
		fmt.Fprintf(w, "%d at a time, each of %d steps that do nothing\n", callers, steps)
		rows := r.rows(callers)
		report.Align(rows, alignment)
		for _, row := range rows {
			fmt.Fprintln(w, strings.TrimRight("  "+strings.Join(row, "  "), " "))
		}
		fmt.Fprintln(w)
	}
	for _, e := range r.engines {
		if e.weaker() {
			fmt.Fprintf(w, "%s promises less: %s\n", e.name, e.durability)
		}
	}
	fmt.Fprintf(w, "the load of the machine before the run: %s, on %d cores\n", r.load, runtime.NumCPU())
	if r.untraced != nil {
		fmt.Fprintf(w, "syncs were not counted: %v\n", r.untraced)
	}
	for _, f := range r.failed {
		fmt.Fprintf(w, "failed: %s\n", report.OneLine(f))
	}
	fmt.Fprintln(w, "\nTo reach, in one run:")
	for _, t := range targets {
		verdict, text := t.check(r)
		fmt.Fprintf(w, "  %-12s  %s: %s", verdict, t.name, t.goal)
		if text != "" {
			fmt.Fprintf(w, "; measured: %s", text)
		}
		fmt.Fprintln(w)
	}
}
