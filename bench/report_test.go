package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bench/system"
)

// sampleReport is a run of two rounds over a few systems, in which every target can be
// measured. Most figures meet theirs.
func sampleReport() comparison {
	server := func(context.Context, string) (*system.Server, error) { return nil, nil }
	r := comparison{
		subject: queues(),
		servers: map[string]*system.Server{"served": {Version: "Server 7"}},
		absent:  map[string]error{"away": errors.New("not installed: awayd\n(apt install awayd)")},
		size:    fullSize,
		rounds:  2,
	}
	r.systems = []system.System{
		{Name: pawlName, Durability: system.Synced, Settings: "default options", Version: "this checkout"},
		{Name: ceilingName, Durability: system.Synced},
		{Name: "inside", Durability: system.Synced, Version: "v1.0.0", Settings: "synchronous=FULL | one connection"},
		{Name: "inside-fast", Durability: "never synced", Version: "v1.0.0"},
		{Name: "served", Durability: system.Synced, Version: "v2.0.0", Start: server},
		{Name: "away", Durability: system.Synced, Version: "v3.0.0", Start: server},
	}
	add := func(name, unit string, values map[string][]float64) {
		for _, s := range r.systems {
			for _, v := range values[s.Name] {
				r.results.Add(s.Name, name, unit, s.Durability, v)
			}
		}
	}
	type by = map[string][]float64
	for _, name := range []string{"producer", "producers", "bulk", "drain", "steady"} {
		add(name, perSecond, by{
			pawlName: {95_000, 97_000}, ceilingName: {100_000, 100_000},
			"inside": {3000, 3100}, "inside-fast": {30_000, 31_000}, "served": {4000, 4100},
		})
	}
	for _, name := range []string{"latency/p50", "latency/p99"} {
		add(name, milliseconds, by{
			pawlName: {1.2, 1.3}, ceilingName: {1, 1}, "inside": {2, 2.1}, "inside-fast": {1, 1}, "served": {0.6, 0.6},
		})
	}
	for _, name := range []string{"payload-64KiB/enqueue", "payload-64KiB/drain"} {
		add(name, megabytes, by{pawlName: {80, 90}, ceilingName: {100, 100}, "inside": {20, 20}})
	}
	for _, metric := range []string{"/enqueue", "/drain"} {
		add("backlog-10k"+metric, perSecond, by{pawlName: {100_000, 90_000}})
		add("backlog-10M"+metric, perSecond, by{pawlName: {80_000}})
		add("backlog-10M"+metric+"-to-10k", ratio, by{pawlName: {0.842}})
	}
	for name, value := range map[string]float64{
		"open/clean-warm": 12, "open/killed-unleased-warm": 150, "open/killed-unleased-cold": 700, "open/heap": 20, "open/killed-warm": 750,
		"due/all-ready": 6, "due/enqueue-p99": 15,
		"idle/commits": 0, "idle/wake-ups": 61, "idle/wake-ups-empty-program": 60.5,
		"space/file": 5, "space/file-reader": 40, "writes/written": 1.2,
	} {
		add(name, milliseconds, by{pawlName: {value}})
	}
	add("due/lone-commit", milliseconds, by{ceilingName: {1}})
	add("allocs/allocs", "allocs/job", by{pawlName: {24, 24}, ceilingName: {14, 15}})
	add("allocs/bytes", "B/job", by{pawlName: {2400, 2400}, ceilingName: {1400, 1500}})
	return r
}

func TestTable(t *testing.T) {
	var out strings.Builder
	r := sampleReport()
	r.table(&out)
	text := out.String()
	assert.Contains(t, text, "inside-fast promises less: never synced\n")
	assert.Contains(t, text, "away was left out: not installed: awayd (apt install awayd)\n")
	for _, g := range groups(r.results) {
		assert.Contains(t, text, g.name)
	}
	for _, target := range targets {
		assert.Contains(t, text, target.name)
	}
}

func TestTableOfNothing(t *testing.T) {
	var out strings.Builder
	comparison{subject: queues()}.table(&out)
	assert.Contains(t, out.String(), string(unmeasured))
}

func TestPrintJSON(t *testing.T) {
	var out bytes.Buffer
	r := sampleReport()
	require.NoError(t, r.results.JSON(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, len(r.results))
	assert.JSONEq(t, `{"system": "pawl", "case": "producer", "value": 96000, "unit": "jobs/s", "durability": "synced",
		"min": 95000, "max": 97000, "rounds": 2}`, lines[0])
	for _, line := range lines {
		assert.True(t, json.Valid([]byte(line)), line)
	}
}

func TestWriteReport(t *testing.T) {
	dir := t.TempDir()
	r := sampleReport()
	r.disk = dir
	require.NoError(t, writeReport(filepath.Join(dir, "performance.md"), "performance.svg", r))

	data, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	require.NoError(t, err)
	text := string(data)
	for _, s := range r.systems {
		assert.Contains(t, text, s.Name)
		assert.Contains(t, text, s.Version)
	}
	for _, target := range targets {
		assert.Contains(t, text, target.name)
		assert.Contains(t, text, target.goal)
	}
	assert.Contains(t, text, strings.TrimSpace(queueNotes))
	assert.Contains(t, text, "](performance.svg)")
	assert.Contains(t, text, "Server 7")
	assert.Contains(t, text, "- away (v3.0.0): not installed: awayd (apt install awayd)\n")
	assert.Contains(t, text, "- payload-64KiB on served\n", "it has no figure")
	assert.NotContains(t, text, "- payload-64KiB on away\n", "it is absent")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			assert.Less(t, utf8.RuneCountInString(line), 110, line)
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "the report and the chart, and nothing of the measured sync")
}

func TestBlocks(t *testing.T) {
	assert.Equal(t, "", blocks(0, 4))
	assert.Equal(t, "▏", blocks(0.0001, 4))
	assert.Equal(t, "██", blocks(0.5, 4))
	assert.Equal(t, "██▌", blocks(0.625, 4))
	assert.Equal(t, "████", blocks(1, 4))
}

// Rule: a figure that is none, as a rate over no time, is left out and said; the others
// reach the report, also as JSON.
func TestFiguresThatAreNone(t *testing.T) {
	for _, none := range []func(*trial){
		func(tr *trial) { tr.rate("", 0, 0) },
		func(tr *trial) { tr.rate("", 7, 0) },
	} {
		r := runner{
			size: tinySize, rounds: 1, disk: t.TempDir(),
			subject: subject{systems: []system.System{{Name: ceilingName}}, cases: []benchCase{
				{name: "none", ceiling: func(tr *trial) error { none(tr); return nil }},
				{name: "some", ceiling: func(tr *trial) error { tr.rate("", 7, time.Second); return nil }},
			}},
		}
		results, err := r.run(t.Context())
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, results.JSON(&out))
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
		require.Contains(t, out.String(), `"case":"some","value":7`)
	}
}
