package workflows

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bench/report"
)

// sampleReport is a run of two rounds in which pawl is as many times as fast as its peers.
func sampleReport(atOne, at16, at64 float64) comparison {
	r := comparison{size: size{rounds: 2, callers: []int{1, 16, 64}, window: time.Second, count: 10}}
	for _, name := range []string{pawlName, dbosFull, "other"} {
		r.engines = append(r.engines, engine{name: name, durability: synced, settings: "a | b"})
	}
	r.engines = append(r.engines, engine{name: "quick", durability: normal})
	add := func(name string, callers int, metric string, values ...float64) {
		for _, v := range values {
			r.results.Add(name, caseName(callers, metric), "workflows/s", synced, v)
		}
	}
	for _, one := range []struct {
		callers int
		times   float64
	}{{1, atOne}, {16, at16}, {64, at64}} {
		add(pawlName, one.callers, throughput, 100*one.times, 300*one.times)
		add(dbosFull, one.callers, throughput, 100, 300)
		add("other", one.callers, throughput, 50, 150)
		add("quick", one.callers, throughput, 9000, 9000)
		add(pawlName, one.callers, syncs, 14)
	}
	return r
}

// A target holds pawl against the best peer of the same promise, round by round.
func TestTargets(t *testing.T) {
	verdicts := func(r comparison) (all []string) {
		for _, t := range targets {
			verdict, text := t.check(r)
			all = append(all, strings.TrimSpace(verdict+" "+text))
		}
		return all
	}
	require.Equal(t, []string{"yes 0.900 times dbos-full", "yes 5.00 times dbos-full", "yes 12.5 times dbos-full"},
		verdicts(sampleReport(0.9, 5, 12.5)))
	require.Equal(t, []string{"no 0.890 times dbos-full", "no 4.90 times dbos-full", "no 11.9 times dbos-full"},
		verdicts(sampleReport(0.89, 4.9, 11.9)))
	require.Equal(t, []string{"not measured", "not measured", "not measured"}, verdicts(comparison{}))
}

// What is shown of a run has every figure, says who promises less, and what failed.
func TestTableAndMarkdown(t *testing.T) {
	r := sampleReport(1, 6, 7)
	r.untraced = errors.New("no tracer")
	r.failed = []failure{{"other", 64, errors.New("it broke\n(badly)")}}
	var table, page bytes.Buffer
	r.table(&table)
	r.markdown(&page, report.Machine{Processor: "abacus"}, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	for _, shown := range []string{table.String(), page.String()} {
		for _, want := range []string{"64 at a time", "200", "6.00x", "weaker", normal, "no tracer",
			"other with 64 at a time: it broke (badly)", "6.00 times dbos-full"} {
			require.Contains(t, shown, want)
		}
	}
	for _, want := range []string{"2 January 2026", "abacus", `a \| b`} {
		require.Contains(t, page.String(), want)
	}
	for i, line := range strings.Split(page.String(), "\n") {
		require.Equal(t, strings.TrimRight(line, " "), line, "line %d", i+1)
	}
}

// A run fails when pawl did, and not when a peer did.
func TestOwnFailureFailsTheRun(t *testing.T) {
	require.NoError(t, comparison{failed: []failure{{"other", 1, errors.New("x")}}}.own())
	require.ErrorContains(t, comparison{failed: []failure{{pawlName, 1, errors.New("broken")}}}.own(), "broken")
}
