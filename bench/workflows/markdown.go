package workflows

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gopawl/pawl/bench/report"
)

// notes are the part of the report that a person wrote.
//
//go:embed notes.md
var notes string

// write writes the report to path.
func (r comparison) write(path, disk string) error {
	m, err := report.Inspect(disk)
	if err != nil {
		return err
	}
	m.Load = r.load
	var text bytes.Buffer
	r.markdown(&text, m, time.Now())
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func (r comparison) markdown(w io.Writer, m report.Machine, now time.Time) {
	fmt.Fprintf(w, `# Performance of workflows

This page compares how many durable workflows a second pawl and other libraries run, when they
keep them in one file. A workflow has %d steps that do nothing. Each caller starts a workflow,
waits for its result, and starts the next. All engines ran on one machine in one run, each trial in
a process and a file of its own. They took turns in each of the %d rounds of %v or more, so that
other load on the machine affects all of them. Trust the ratios between them. The figures themselves
belong to this machine, on %s.

`, steps, r.size.rounds, r.size.window, now.Format("2 January 2006"))
	r.markdownTargets(w)
	r.markdownResults(w)
	fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(notes))
	r.markdownEngines(w)
	m.Markdown(w)
	fmt.Fprint(w, repeat)
}

func (r comparison) markdownTargets(w io.Writer) {
	fmt.Fprint(w, `## Goals, in one run

Pawl syncs each commit to the disk before it answers. A peer with the same promise does so
too. A ratio is the median of the ratios of the rounds.

`)
	rows := [][]string{{"", "to reach", "measured", "reached"}}
	for _, t := range targets {
		verdict, text := t.check(r)
		rows = append(rows, []string{t.name, t.goal, text, verdict})
	}
	report.Table(w, "llll", rows)
}

func (r comparison) markdownResults(w io.Writer) {
	fmt.Fprintf(w, `## Results

Workflows a second are the median, the least, and the greatest of the rounds. pawl/this is pawl's
figure divided by that of the line. p50 and p99 measure the time from the start of a workflow to
its result. CPU is the processor time of a workflow, including its caller. The last three columns
come from one trial of %d workflows for each engine: the calls of fsync and similar for a workflow,
which a tracer counted; the size of the closed folder divided by the number of workflows in it; and
the most memory that the process had, including pages of mapped files.

`, r.size.count)
	for _, callers := range r.size.callers {
		fmt.Fprintf(w, "### %d at a time\n\n", callers)
		report.Table(w, alignment, r.rows(callers))
	}
	if r.untraced != nil {
		report.Fold(w, "", fmt.Sprintf("Syncs were not counted: %v.", r.untraced))
		fmt.Fprintln(w)
	}
	if len(r.failed) > 0 {
		fmt.Fprint(w, "These failed and lack figures:\n\n")
		for _, f := range r.failed {
			report.Fold(w, "- ", report.OneLine(f))
		}
		fmt.Fprintln(w)
	}
}

func (r comparison) markdownEngines(w io.Writer) {
	fmt.Fprint(w, "## The engines\n\n")
	rows := [][]string{{"engine", "durability", "versions", "settings"}}
	for _, e := range r.engines {
		rows = append(rows, []string{e.name, e.durability, e.versions(), e.settings})
	}
	report.Table(w, "llll", rows)
}

// repeat is how a reader gets figures of their own.
const repeat = `## How to repeat it

    cd bench && go run . workflows

prints the tables and writes this file. It counts syncs if strace is installed.

| flag            | what it does                                                               |
|-----------------|----------------------------------------------------------------------------|
| -quick          | a short window in one round, in under a minute; writes no report           |
| -only REGEXP    | only the engines whose names match; writes no report                       |
| -callers N      | only with so many callers; writes no report                                |
| -dir FOLDER     | on the disk to measure; in a folder in memory, syncs cost nothing          |
| -rounds N       | how often each engine has its turn                                         |
| -profile FOLDER | a CPU profile of each trial                                                |
| -json           | one JSON object a line                                                     |
`
