package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// notes are the part of the report that a person wrote.
//
//go:embed notes.md
var notes string

// write writes the report to path.
func (r report) write(path, disk string) error {
	m, err := inspect(disk)
	if err != nil {
		return err
	}
	m.load = r.load
	var text bytes.Buffer
	r.markdown(&text, m, time.Now())
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func (r report) markdown(w io.Writer, m machine, now time.Time) {
	fmt.Fprintf(w, `# Performance of workflows

How many durable workflows a second pawl runs, beside other libraries that keep them in one
file. A workflow has %d steps that do nothing. So many callers at a time start a workflow
each, wait for its result and start the next. All engines were measured in one run on one
machine, each trial in a process and a file of its own, and took turns in each of the %d
rounds of %v or more, so that they share what the machine did meanwhile. The ratios between them are
what to take from here; the figures themselves are this machine's, on %s.

`, steps, r.size.rounds, r.size.window, now.Format("2 January 2006"))
	r.markdownTargets(w)
	r.markdownResults(w)
	fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(notes))
	r.markdownEngines(w)
	m.markdown(w)
	fmt.Fprint(w, repeat)
}

func (r report) markdownTargets(w io.Writer) {
	fmt.Fprint(w, `## To reach, in one run

Pawl syncs each commit to the disk before it answers; a peer with the same promise does so
too. A ratio is the median of the ratios in each round.

`)
	rows := [][]string{{"", "to reach", "measured", "reached"}}
	for _, t := range targets {
		verdict, text := t.check(r)
		rows = append(rows, []string{t.name, t.goal, text, verdict})
	}
	markdownTable(w, "llll", rows)
}

func (r report) markdownResults(w io.Writer) {
	fmt.Fprintf(w, `## Results

Workflows a second are the median of the rounds, with the least and the greatest; pawl/this
is pawl's figure divided by that of the line. p50 and p99 are from the start of a workflow
to its result. CPU is the processor time that a workflow took, its caller's share included.
The last three come from one trial of %d workflows for each engine: calls of fsync and its
like for a workflow, counted by a tracer; the closed folder divided by the workflows in it;
and the most memory that the process had, pages of mapped files included.

`, r.size.count)
	for _, callers := range r.size.callers {
		fmt.Fprintf(w, "### %d at a time\n\n", callers)
		markdownTable(w, alignment, r.rows(callers))
	}
	if r.untraced != nil {
		fold(w, "", fmt.Sprintf("Syncs were not counted: %v.", r.untraced))
		fmt.Fprintln(w)
	}
	if len(r.failed) > 0 {
		fmt.Fprint(w, "Failed, and so without all figures:\n\n")
		for _, f := range r.failed {
			fold(w, "- ", oneLine(f.String()))
		}
		fmt.Fprintln(w)
	}
}

func (r report) markdownEngines(w io.Writer) {
	fmt.Fprint(w, "## The engines\n\n")
	rows := [][]string{{"engine", "durability", "versions", "settings"}}
	for _, e := range r.engines {
		rows = append(rows, []string{e.name, e.durability, e.versions(), e.settings})
	}
	markdownTable(w, "llll", rows)
}

// repeat is how a reader gets figures of their own.
const repeat = `## How to repeat it

    cd bench/workflows && go run .

prints the tables, and writes this file. Syncs are counted where strace is installed.

| flag            | what it does                                                               |
|-----------------|----------------------------------------------------------------------------|
| -quick          | a short window in one round, in under a minute; writes no report           |
| -only REGEXP    | only the engines whose names match; writes no report                       |
| -callers N      | only with so many callers; writes no report                                |
| -dir FOLDER     | on the disk to measure; a folder in memory tells nothing of synced commits |
| -rounds N       | how often each engine has its turn                                         |
| -profile FOLDER | a CPU profile of each trial                                                |
| -json           | one JSON object a line                                                     |
`

// markdownTable writes rows, the first of which is the header, and an empty line.
func markdownTable(w io.Writer, alignment string, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
	}
	align(rows, alignment)
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

// fold writes text in lines that are easy to read; those after the first are indented as
// the mark before the first is wide.
func fold(w io.Writer, mark, text string) {
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
