package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bench/report"
)

func checkTarget(t *testing.T, r comparison, name string) (verdict, string) {
	t.Helper()
	i := slices.IndexFunc(targets, func(one target) bool { return one.name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return targets[i].check(r)
}

func TestTargets(t *testing.T) {
	for name, want := range map[string]struct {
		result verdict
		text   string
	}{
		"drain, 16 no-op workers, 100 B":            {met, "0.960 of the ceiling; 23.7 times served"},
		"64 producers and 16 workers":               {met, "23.7 times served"},
		"enqueue, 64 producers":                     {met, "0.960 of the ceiling; 31.5 times inside"},
		"enqueue, bulk of 1 000":                    {met, "0.960 of the ceiling; 3.15 times inside-fast, which promises less"},
		"enqueue, one producer":                     {met, "0.960 of a lone commit; 31.5 times inside"},
		"latency on an idle queue":                  {met, "1.25 lone commits at p50; 1.25 lone commits at p99"},
		"backlog of 10 million against 10 thousand": {met, "0.842 in enqueue; 0.842 in fetch"},
		"opening 1 million jobs": {met, "12.0 ms after a clean close; 150 ms after a kill, warm; 700 ms cold; " +
			"20.0 MiB of heap; 600 ms more with leases to take back"},
		"1 million jobs due in the same second": {met, "6.00 s until all are ready; 15.0 lone commits at p99"},
		"idle, 100 000 delayed until tomorrow": {met, "0 commits; 0.500 wake-ups a minute more than an empty program; " +
			"60.5 of the empty program"},
		"64 KiB payloads": {met, "0.850 of the ceiling in enqueue; 0.850 of the ceiling in drain; " +
			"1.20 bytes written for each of payload"},
		"file after a million jobs through a backlog of a thousand": {met, "5.00 MiB; 40.0 MiB with a reader"},
		"allocations, enqueue and run of a 100 B job at batches of 64": {met, "9.50 allocations above the ceiling's; " +
			"950 bytes above the ceiling's"},
	} {
		result, text := checkTarget(t, sampleReport(), name)
		assert.Equal(t, want.result, result, name)
		assert.Equal(t, want.text, text, name)
	}
	assert.Len(t, targets, 13, "each is looked at above")
}

func TestTargetMissed(t *testing.T) {
	r := sampleReport()
	change(r, "served", "drain", 5000, 5000)
	result, text := checkTarget(t, r, "drain, 16 no-op workers, 100 B")
	assert.Equal(t, missed, result)
	assert.Equal(t, "0.960 of the ceiling; 19.2 times served (missed)", text)

	change(r, "served", "drain", 4801, 4801)
	result, text = checkTarget(t, r, "drain, 16 no-op workers, 100 B")
	assert.Equal(t, missed, result)
	assert.Equal(t, "0.960 of the ceiling; 20.0 times served (just missed)", text)

	change(r, pawlName, "idle/commits", 1)
	result, text = checkTarget(t, r, "idle, 100 000 delayed until tomorrow")
	assert.Equal(t, missed, result)
	assert.Contains(t, text, "1.00 commits (missed);")
}

func TestTargetNotMeasured(t *testing.T) {
	for _, target := range targets {
		result, text := target.check(comparison{size: fullSize})
		assert.Equal(t, unmeasured, result, target.name)
		assert.Empty(t, text, target.name)
	}
}

func TestTargetMeasuredInPart(t *testing.T) {
	const name = "drain, 16 no-op workers, 100 B"
	r := sampleReport()
	r.results = slices.DeleteFunc(r.results, func(one *report.Result) bool { return one.System == ceilingName })
	result, text := checkTarget(t, r, name)
	assert.Equal(t, unmeasured, result)
	assert.Equal(t, "of the ceiling: not measured; 23.7 times served", text)

	change(r, pawlName, "drain", 1, 1)
	result, _ = checkTarget(t, r, name)
	assert.Equal(t, missed, result, "whatever the other part may be")
}

func TestTargetInSmallerCases(t *testing.T) {
	r := sampleReport()
	r.size = quickSize
	change(r, pawlName, "open/heap", 100)
	result, text := checkTarget(t, r, "opening 1 million jobs")
	assert.Equal(t, unmeasured, result)
	assert.Contains(t, text, "100 MiB of heap; 600 ms more with leases to take back; but in smaller cases")

	result, _ = checkTarget(t, r, "64 producers and 16 workers")
	assert.Equal(t, met, result)
}

func change(r comparison, system, name string, values ...float64) {
	r.results.Find(system, name).Set(values...)
}
