package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// report is a run, and all that is told of it.
type report struct {
	results  []*result
	engines  []engine
	size     size
	failed   []failure
	untraced error
	load     string // of the machine before the run
}

// own is the failure of this library, if it failed; peers may.
func (r report) own() error {
	var all []error
	for _, f := range r.failed {
		if f.engine == pawlName {
			all = append(all, errors.New(f.String()))
		}
	}
	return errors.Join(all...)
}

// line is one figure as JSON.
type line struct {
	Engine     string  `json:"engine"`
	Callers    int     `json:"callers"`
	Metric     string  `json:"metric"`
	Value      float64 `json:"value"` // the median of the rounds
	Unit       string  `json:"unit"`
	Durability string  `json:"durability"`
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Rounds     int     `json:"rounds"`
}

func (r report) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range r.engines {
		for _, one := range r.results {
			if one.engine != e.name {
				continue
			}
			unit := ""
			for _, u := range units {
				if u.metric == one.metric {
					unit = u.unit
				}
			}
			if err := enc.Encode(line{e.name, one.callers, one.metric, one.median(), unit, e.durability,
				slices.Min(one.values), slices.Max(one.values), len(one.values)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// alignment is that of the columns of rows.
const alignment = "lrrrrrrrrrrl"

// rows are the figures with so many callers, below a header.
func (r report) rows(callers int) [][]string {
	rows := [][]string{{"", "workflows/s", "min", "max", "pawl/this", "p50 ms", "p99 ms", "CPU ms", "syncs", "file KiB", "memory MiB", "promise"}}
	for _, e := range r.engines {
		row := []string{e.name}
		for _, u := range units {
			one := r.find(e.name, callers, u.metric)
			if one == nil {
				row = append(row, "")
			} else {
				row = append(row, number(one.median()))
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
				times = number(ratio) + "x"
			}
			row = append(row, number(slices.Min(one.values)), number(slices.Max(one.values)), times)
		}
		rows = append(rows, append(row, e.promise()))
	}
	return rows
}

// table shows a run on a terminal.
func (r report) table(w io.Writer) {
	for _, callers := range r.size.callers {
		fmt.Fprintf(w, "%d at a time, each of %d steps that do nothing\n", callers, steps)
		rows := r.rows(callers)
		align(rows, alignment)
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
		fmt.Fprintf(w, "failed: %s\n", oneLine(f.String()))
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

// number has three digits, or all of a greater one, by thousands.
func number(v float64) string {
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
	digits := fmt.Sprintf("%.0f", v)
	var text strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && len(digits) > 4 {
			text.WriteRune('\u00a0') // a space at which no line ends
		}
		text.WriteRune(digit)
	}
	return text.String()
}

// align pads the cells of each column to one width. The alignment has a letter for each
// column, l or r.
func align(rows [][]string, alignment string) {
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

// oneLine is a text that may have several lines, in one.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
