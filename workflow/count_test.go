package workflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: a count has each run once, by its row, and a pause takes precedence over a block.
func TestCount(t *testing.T) {
	d := newDesk(t)
	count, err := d.Count(t.Context())
	require.NoError(t, err)
	require.Zero(t, count, "there never was a run")

	paused := func(row *runRow) { row.Paused = true }
	for id, bring := range map[string]func(pawl.ID){
		"sleeps":           func(run pawl.ID) { d.suspend(run, Sleeping, nil) },
		"waits":            func(run pawl.ID) { d.suspend(run, Waiting, nil) },
		"dead":             func(run pawl.ID) { jobIn[pawl.Dead](d, run) },
		"paused":           func(run pawl.ID) { d.suspend(run, Waiting, paused) },
		"blocked":          func(run pawl.ID) { d.block(run, "1") },
		"blocked, paused":  func(run pawl.ID) { d.block(run, "1"); d.edit(run, paused) },
		"done":             func(run pawl.ID) { jobIn[""](d, run); d.end(run, Done) },
		"done, was paused": func(run pawl.ID) { jobIn[""](d, run); d.edit(run, paused); d.end(run, Done) },
		"failed":           func(run pawl.ID) { jobIn[""](d, run); d.end(run, Failed) },
		"cancelled":        func(run pawl.ID) { jobIn[""](d, run); d.end(run, Cancelled) },
		"terminated":       func(run pawl.ID) { jobIn[""](d, run); d.end(run, Terminated) },
		"spoilt":           func(run pawl.ID) { jobIn[""](d, run); d.spoil(tableRuns, run[:]) },
		"of no status":     func(run pawl.ID) { jobIn[""](d, run); d.edit(run, func(row *runRow) { row.Status = "lost" }) },
	} {
		bring(d.start(id))
	}
	d.start("ready")
	count, err = d.Count(t.Context())
	require.NoError(t, err)
	require.Equal(t, Counts{Active: 4, Paused: 2, Blocked: 1, Done: 2, Failed: 1, Cancelled: 1, Terminated: 1, Damaged: 2}, count)
}

// Rule: if there are more runs than a count reads, it counts the newest, and all blocked ones.
func TestCountOfTheNewest(t *testing.T) {
	d := newDesk(t)
	d.block(d.start("old"), "1")
	d.block(d.start("new"), "1")
	both := d.start("new and paused")
	d.block(both, "1")
	d.edit(both, func(row *runRow) { row.Paused = true })
	for i := range 3 {
		d.start(fmt.Sprint(i))
	}
	for most, want := range map[int]Counts{
		6: {Active: 3, Blocked: 2, Paused: 1},
		5: {Active: 3, Blocked: 2, Paused: 1, More: true},
		4: {Active: 3, Blocked: 2, Paused: 1, More: true},
		3: {Active: 3, Blocked: 3, More: true},
		2: {Active: 2, Blocked: 2, More: true}, // as many as it reads
	} {
		got, err := d.count(t.Context(), most)
		require.NoError(t, err)
		require.Equal(t, want, got, most)
	}
}

// Rule: the status and the pause read from a row equal those of the fully decoded row, whatever
// precedes them. A truncated row is refused.
func TestStandingOfARow(t *testing.T) {
	g := newGlance()
	for _, row := range []*runRow{
		{},
		{Flow: "f", ID: "1", Status: Waiting, Created: 1 << 60, Retain: -1, Due: 1 << 40, Steps: 70_000, Bytes: 200, Signals: 1 << 63, Paused: true},
		{Flow: strings.Repeat("f", 40), ID: strings.Repeat("x", 300), Status: Terminated, Build: strings.Repeat("b", 70_000),
			Fingerprint: make([]byte, 32), Waits: []string{"a", strings.Repeat("n", 200)}, Cancel: "why", Terminate: "why"},
		{Status: Blocked, Waits: make([]string, 20), Fingerprint: []byte{}, Restarts: -5, Unread: 300, Due: -1 << 40, Paused: true},
	} {
		content, err := driver.EncodePayload(row)
		require.NoError(t, err)
		status, paused, ok := g.standing(content)
		require.True(t, ok)
		require.Equal(t, row.Status, status)
		require.Equal(t, row.Paused, paused)
		_, _, ok = g.standing(content[:20])
		require.False(t, ok)
	}
	for _, other := range []string{"", "\xc0", "\x93\x01\x02\x03", "\xdc\x00\x20\xa1f\xa1i\xc7\xff", "\xdc\x00\x20\xa1f\xa1i\xa1s\xdc\xff\xff",
		"\xdc\x00\x20\xdb\xff\xff\xff\xff", "\xdc\x00\x20" + strings.Repeat("\x91", 1<<20), "\xdc\x00\x20" + strings.Repeat("\x81\xc0", 1<<20)} {
		_, _, ok := g.standing([]byte(other))
		require.False(t, ok, "%.20x", other)
	}
}
