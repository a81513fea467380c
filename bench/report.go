package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// comparison is a run with all that its report needs.
type comparison struct {
	subject
	results report.Results
	servers map[string]*system.Server
	absent  map[string]error // by the system's name: why it was not measured
	size    size
	rounds  int
	disk    string // a folder on the disk that was measured
	load    string // of the machine before the run
}

var pawlName = system.Pawl().Name

// group is one metric of one case over all systems.
type group struct {
	name    string // of the case, with the metric behind a slash
	results report.Results
}

// groups are the results by case and metric, in the order of the run, pawl first.
func groups(results report.Results) []group {
	var all []group
	for _, r := range results {
		i := slices.IndexFunc(all, func(g group) bool { return g.name == r.Case })
		if i < 0 {
			i = len(all)
			all = append(all, group{name: r.Case})
		}
		all[i].results = append(all[i].results, r)
	}
	for _, g := range all {
		slices.SortStableFunc(g.results, rank)
	}
	return all
}

func (g group) unit() string { return g.results[0].Unit }

// most is the greatest value, bounds included.
func (g group) most() float64 {
	return slices.MaxFunc(g.results, func(a, b *report.Result) int { return cmp.Compare(a.Max, b.Max) }).Max
}

// ratio is pawl's figure divided by this one, empty where there is no such ratio.
func (g group) ratio(r *report.Result) string {
	pawl := g.results[0]
	if pawl.System != pawlName || r == pawl || r.Value == 0 {
		return ""
	}
	return report.Number(report.Compare(pawl, r, func(a, b float64) float64 { return a / b })) + "x"
}

// promise is the durability in a word.
func promise(r *report.Result) string {
	if r.Durability == system.Synced {
		return system.Synced
	}
	return "weaker"
}

// better says which way a figure is to be read.
func better(unit string) string {
	if unit == perSecond || unit == megabytes {
		return "more is better"
	}
	return "less is better"
}

// about is what a case does, empty where there is no such case.
func (r comparison) about(name string) string {
	name, _, _ = strings.Cut(name, "/")
	for _, c := range r.cases {
		if c.name == name {
			return c.about
		}
	}
	return ""
}

// table shows a run on a terminal.
func (r comparison) table(w io.Writer) {
	rows := [][]string{{"", "median", "min", "max", "pawl/this", ""}}
	all := groups(r.results)
	for _, g := range all {
		for _, one := range g.results {
			rows = append(rows, []string{"  " + one.System, report.Number(one.Value), report.Number(one.Min), report.Number(one.Max),
				g.ratio(one), promise(one)})
		}
	}
	report.Align(rows, "lrrrrl")
	header, rows := rows[0], rows[1:]
	for _, g := range all {
		if text := r.about(g.name); text != "" {
			fmt.Fprintf(w, "%s: %s\n", g.name, text)
		} else {
			fmt.Fprintln(w, g.name)
		}
		fmt.Fprintf(w, "%s  %s, %s\n", strings.Join(header[:5], "  "), g.unit(), better(g.unit()))
		for _, one := range g.results {
			fmt.Fprintf(w, "%s  %s\n", strings.Join(rows[0], "  "), blocks(one.Value/g.most(), 24))
			rows = rows[1:]
		}
		fmt.Fprintln(w)
	}
	for _, s := range r.systems {
		switch err := r.absent[s.Name]; {
		case err != nil:
			fmt.Fprintf(w, "%s was left out: %s\n", s.Name, report.OneLine(err))
		case s.Durability != system.Synced:
			fmt.Fprintf(w, "%s promises less: %s\n", s.Name, s.Durability)
		}
	}
	fmt.Fprintln(w, "\nTo reach, in one run:")
	for _, t := range r.targets {
		result, text := t.check(r)
		fmt.Fprintf(w, "\n%-12s  %s\n%14sto reach: %s\n", result, t.name, "", t.goal)
		if text != "" {
			fmt.Fprintf(w, "%14smeasured: %s\n", "", text)
		}
	}
}

// blocks is a bar of up to so many characters.
func blocks(share float64, width int) string {
	if !(share > 0) {
		return ""
	}
	eighths := max(1, int(math.Round(min(share, 1)*float64(width)*8)))
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}
