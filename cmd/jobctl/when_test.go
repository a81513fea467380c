package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule: ages are durations before now; dates and times without a zone are in the user's zone.
func TestParseMoment(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for text, want := range map[string]time.Time{
		"90s":                  today.Add(-90 * time.Second),
		"5m":                   today.Add(-5 * time.Minute),
		"1h30m":                today.Add(-90 * time.Minute),
		"7d":                   today.Add(-7 * 24 * time.Hour),
		"2w":                   today.Add(-14 * 24 * time.Hour),
		"0s":                   today,
		"2026-03-01":           time.Date(2026, 3, 1, 0, 0, 0, 0, berlin),
		"2026-03-01 09:30":     time.Date(2026, 3, 1, 9, 30, 0, 0, berlin),
		"2026-03-01T09:30:15":  time.Date(2026, 3, 1, 9, 30, 15, 0, berlin),
		"2026-03-01T09:30:15Z": time.Date(2026, 3, 1, 9, 30, 15, 0, time.UTC),
	} {
		got, err := parseMoment(text, today, berlin)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	later, err := parseFuture("2h", today, berlin)
	require.NoError(t, err)
	require.Equal(t, today.Add(2*time.Hour), later)
	for _, text := range []string{"", "5", "-5m", "d", "-1d", "1.5d", "99999999999d", "4294967295w", "yesterday", "2026-13-01", "2026-03-01T25:00:00Z"} {
		_, err := parseMoment(text, today, berlin)
		require.ErrorIs(t, err, errMoment, text)
	}
}

// Rule: people see times in their zone, and with --utc in UTC; a time outside the calendar is
// limited.
func TestClock(t *testing.T) {
	a := &app{now: func() time.Time { return today }, zone: time.FixedZone("", 2*3600)}
	require.Equal(t, "2026-03-01T11:00:00.000+02:00", a.clock(start))
	a.flags.utc = true
	require.Equal(t, "2026-03-01T09:00:00.000Z", a.clock(start))
	require.Equal(t, "9999-12-31T23:59:59.999Z", a.clock(time.Unix(1<<60, 0)))
}
