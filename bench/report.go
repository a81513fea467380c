package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gopawl/pawl/bench/system"
)

// report is a run, and all that is told of it.
type report struct {
	results []*result
	systems []system.System
	servers map[string]*system.Server
	absent  map[string]error // by the system's name: why it was not measured
	size    size
	rounds  int
	disk    string // a folder on the disk that was measured
}

var pawlName = system.Pawl().Name

// notes are the part of the report that a person wrote.
//
//go:embed notes.md
var notes string

func printJSON(w io.Writer, results []*result) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range results {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// group is one metric of one case over all systems.
type group struct {
	name    string // of the case, with the metric behind a slash
	results []*result
}

// groups are the results by case and metric, in the order of the run, pawl first.
func groups(results []*result) []group {
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
	return slices.MaxFunc(g.results, func(a, b *result) int { return cmp.Compare(a.Max, b.Max) }).Max
}

// ratio is pawl's figure divided by this one, empty where there is no such ratio.
func (g group) ratio(r *result) string {
	pawl := g.results[0]
	if pawl.System != pawlName || r == pawl || r.Value == 0 {
		return ""
	}
	return number(compare(pawl, r, func(a, b float64) float64 { return a / b })) + "x"
}

// promise is the durability in a word.
func (r *result) promise() string {
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
func about(name string) string {
	name, _, _ = strings.Cut(name, "/")
	for _, c := range allCases() {
		if c.name == name {
			return c.about
		}
	}
	return ""
}

func allCases() []benchCase { return append(sharedCases(), ownCases()...) }

// table shows a run on a terminal.
func (r report) table(w io.Writer) {
	rows := [][]string{{"", "median", "min", "max", "pawl/this", ""}}
	all := groups(r.results)
	for _, g := range all {
		for _, one := range g.results {
			rows = append(rows, []string{"  " + one.System, number(one.Value), number(one.Min), number(one.Max),
				g.ratio(one), one.promise()})
		}
	}
	align(rows, "lrrrrl")
	header, rows := rows[0], rows[1:]
	for _, g := range all {
		if text := about(g.name); text != "" {
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
			fmt.Fprintf(w, "%s was left out: %s\n", s.Name, oneLine(err))
		case s.Durability != system.Synced:
			fmt.Fprintf(w, "%s promises less: %s\n", s.Name, s.Durability)
		}
	}
	fmt.Fprintln(w, "\nTo reach, in one run:")
	for _, t := range targets {
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

// writeReport writes the report to path, and its chart beside it.
func writeReport(path, chartName string, r report) error {
	m, err := inspect(r.disk)
	if err != nil {
		return err
	}
	var text, picture bytes.Buffer
	r.markdown(&text, chartName, m)
	chart(&picture, r)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), chartName), picture.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func (r report) markdown(w io.Writer, chartName string, m machine) {
	fmt.Fprintf(w, `# Performance

How many jobs pawl stores and runs a second, beside other queues and beside what bbolt can
do at best. All systems were measured in one run on one machine and took turns in each of
the %d rounds of a case, so that they share what the machine did meanwhile. The ratios
between them are what to take from here; the figures themselves are this machine's.

![Bars of each system in the cases that all of them run](%s)

`, r.rounds, chartName)
	r.markdownTargets(w)
	fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(notes))
	m.markdown(w)
	r.markdownSystems(w)
	r.markdownResults(w)
	fmt.Fprint(w, repeat)
}

func (r report) markdownTargets(w io.Writer) {
	fmt.Fprint(w, `## To reach, in one run

Pawl syncs each commit to the disk before it answers. A peer with the same promise does so
too; the ceiling is a program on bare bbolt that moves records of 200 bytes through the
states of a queue and does nothing else. Where there are several rounds, a ratio is the
median of the ratios in each round.

`)
	rows := [][]string{{"case", "to reach", "measured", "reached"}}
	for _, t := range targets {
		result, text := t.check(r)
		rows = append(rows, []string{t.name, t.goal, text, string(result)})
	}
	markdownTable(w, "llll", rows)
}

func (r report) markdownSystems(w io.Writer) {
	fmt.Fprint(w, "## The systems\n\nA queue that a server keeps was reached on the same machine.\n\n")
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
	markdownTable(w, "llll", rows)
	if len(r.absent) > 0 {
		fmt.Fprint(w, "Absent, and so without figures:\n\n")
		for _, s := range r.systems {
			if err := r.absent[s.Name]; err != nil {
				fold(w, "- ", fmt.Sprintf("%s (%s): %s", s.Name, s.Version, oneLine(err)))
			}
		}
		fmt.Fprintln(w)
	}
}

func (r report) markdownResults(w io.Writer) {
	fmt.Fprint(w, `## All results

The median of the rounds with the least and the greatest of them; pawl/this is pawl's
figure divided by that of the line. What a weaker durability is stands above, with the
system.

`)
	if failed := r.failed(); len(failed) > 0 {
		fmt.Fprint(w, "Failed, and so without figures; the run told why:\n\n")
		for _, one := range failed {
			fold(w, "- ", one)
		}
		fmt.Fprintln(w)
	}
	last := ""
	for _, g := range groups(r.results) {
		name, metric, _ := strings.Cut(g.name, "/")
		if name != last {
			fmt.Fprintf(w, "### %s\n\n", name)
			if text := about(name); text != "" {
				fold(w, "", strings.ToUpper(text[:1])+text[1:]+".")
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
			rows = append(rows, []string{one.System, number(one.Value), number(one.Min), number(one.Max),
				strconv.Itoa(len(one.values)), g.ratio(one), one.promise()})
		}
		markdownTable(w, "lrrrrrl", rows)
	}
}

// failed names what a run of all cases should have measured and has not.
func (r report) failed() []string {
	var failed []string
	for _, c := range allCases() {
		for _, s := range r.systems {
			due := c.peers != nil
			switch s.Name {
			case pawlName:
				due = c.peers != nil || c.own != nil
			case ceilingName:
				due = c.ceiling != nil
			}
			if due && r.absent[s.Name] == nil && !slices.ContainsFunc(r.results, func(have *result) bool {
				name, _, _ := strings.Cut(have.Case, "/")
				return have.System == s.Name && name == c.name
			}) {
				failed = append(failed, c.name+" on "+s.Name)
			}
		}
	}
	return failed
}

// repeat is how a reader gets figures of their own.
const repeat = `## How to repeat it

    cd bench && go run .

prints a table, and writes this file and its chart. Queues that a server keeps take part
where their programs are installed: the Debian packages redis-server, postgresql and
beanstalkd. The benchmark starts them on loopback or a socket with data of their own and
stops them again.

| flag          | what it does                                                                  |
|---------------|-------------------------------------------------------------------------------|
| -quick        | smaller cases in one round, in under a minute; writes no report               |
| -case REGEXP  | only the cases whose names match; writes no report                            |
| -only REGEXP  | only the systems whose names match; writes no report                          |
| -dir FOLDER   | on the disk to measure; a folder in memory tells nothing of synced commits    |
| -rounds N     | how often each system has its turn in a case                                  |
| -json         | one JSON object a line: system, case, value, unit, durability, min, max       |
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

// oneLine is the text of an error that may quote several lines of a program's.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

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
	digits := fmt.Sprintf("%.0f", size)
	var text strings.Builder
	if v < 0 {
		text.WriteByte('-')
	}
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && len(digits) > 4 {
			text.WriteRune('\u00a0') // a space at which no line ends
		}
		text.WriteRune(digit)
	}
	return text.String()
}
