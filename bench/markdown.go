package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl/bench/report"
)

// writeReport writes the report to path, and beside it its chart, unless that has no name.
func writeReport(path, chartName string, r comparison) error {
	m, err := report.Inspect(r.disk)
	if err != nil {
		return err
	}
	m.Load = r.load
	var text, picture bytes.Buffer
	r.markdown(&text, chartName, m)
	if chartName != "" {
		chart(&picture, r)
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), chartName), picture.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func (r comparison) markdown(w io.Writer, chartName string, m report.Machine) {
	fmt.Fprintf(w, r.intro, r.rounds)
	if chartName != "" {
		fmt.Fprintf(w, "\n![Bars of each system in the cases that all of them run](%s)\n", chartName)
	}
	fmt.Fprintln(w)
	r.markdownTargets(w)
	if r.notes != "" {
		fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(r.notes))
	}
	m.Markdown(w)
	r.markdownSystems(w)
	r.markdownResults(w)
	fmt.Fprint(w, r.repeat)
}

func (r comparison) markdownTargets(w io.Writer) {
	fmt.Fprintf(w, "## Goals, in one run\n\n%s\n", r.promise)
	rows := [][]string{{"case", "to reach", "measured", "reached"}}
	for _, t := range r.targets {
		result, text := t.check(r)
		rows = append(rows, []string{t.name, t.goal, text, string(result)})
	}
	report.Table(w, "llll", rows)
}

func (r comparison) markdownSystems(w io.Writer) {
	fmt.Fprint(w, "## The systems\n\nServers ran on the same machine as their clients.\n\n")
	rows := [][]string{{"system", "durability", "version", "settings"}}
	for _, s := range r.systems {
		if r.absent[s.Name] != nil {
			continue
		}
		version := s.Version
		if server := r.servers[s.Name]; server != nil {
			version = strings.Trim(version+", "+server.Version, ", ")
		}
		rows = append(rows, []string{s.Name, s.Durability, version, s.Settings})
	}
	report.Table(w, "llll", rows)
	if len(r.absent) > 0 {
		fmt.Fprint(w, "Absent, and so without figures:\n\n")
		for _, s := range r.systems {
			if err := r.absent[s.Name]; err != nil {
				report.Fold(w, "- ", fmt.Sprintf("%s (%s): %s", s.Name, s.Version, report.OneLine(err)))
			}
		}
		fmt.Fprintln(w)
	}
}

func (r comparison) markdownResults(w io.Writer) {
	fmt.Fprint(w, `## All results

Each line has the median, the least, and the greatest of the rounds. pawl/this is pawl's figure
divided by that of the line. The table of systems says what a weaker durability means.

`)
	if failed := r.failed(); len(failed) > 0 {
		fmt.Fprint(w, "These failed or were skipped, and have no figures:\n\n")
		for _, one := range failed {
			report.Fold(w, "- ", one)
		}
		fmt.Fprintln(w)
	}
	last := ""
	for _, g := range groups(r.results) {
		name, metric, _ := strings.Cut(g.name, "/")
		if name != last {
			fmt.Fprintf(w, "### %s\n\n", name)
			if text := r.about(name); text != "" {
				report.Fold(w, "", strings.ToUpper(text[:1])+text[1:]+".")
				fmt.Fprintln(w)
			}
			last = name
		}
		unit := g.unit() + ", " + better(g.unit())
		if metric != "" {
			unit = "**" + metric + "**, in " + unit
		} else {
			unit = "In " + unit
		}
		fmt.Fprintf(w, "%s:\n\n", unit)
		rows := [][]string{{"system", "median", "min", "max", "rounds", "pawl/this", "durability"}}
		for _, one := range g.results {
			rows = append(rows, []string{one.System, report.Number(one.Value), report.Number(one.Min), report.Number(one.Max),
				strconv.Itoa(one.Rounds), g.ratio(one), promise(one)})
		}
		report.Table(w, "lrrrrrl", rows)
	}
}

// failed names what a run of all cases should have measured and has not.
func (r comparison) failed() []string {
	var failed []string
	for _, c := range r.cases {
		for _, s := range r.systems {
			due := c.peers != nil
			switch s.Name {
			case pawlName:
				due = c.peers != nil || c.own != nil
			case ceilingName:
				due = c.ceiling != nil
			}
			if due && r.absent[s.Name] == nil && !slices.ContainsFunc(r.results, func(have *report.Result) bool {
				name, _, _ := strings.Cut(have.Case, "/")
				return have.System == s.Name && name == c.name
			}) {
				failed = append(failed, c.name+" on "+s.Name)
			}
		}
	}
	return failed
}
