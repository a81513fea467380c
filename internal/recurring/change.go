package recurring

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/schedule"
)

func daily(name string) schedule.Definition {
	return schedule.Job(name, "30 2 * * *", report, "x", schedule.Overlap(schedule.Allow))
}

// deploy stops the program for a time, and starts its next build with other schedules.
func (k *kit) deploy(stopped time.Duration, defs ...schedule.Definition) {
	k.Helper()
	k.close()
	k.pass(stopped)
	k.open()
	k.sync(defs...)
}

// Rule: a daily schedule that becomes hourly while the program is stopped is late by days, and not by
// hours. From the start on, it fires by the hour.
func dailyToHourly(k *kit) {
	k.sync(daily("a"))
	k.pass(time.Hour)
	k.deploy(52*time.Hour+15*time.Minute, hourly("a")) // until 05:15 on the third day
	late := []string{"missed 01 02:30:00 to 02 02:30:00", "fired 03 02:30:00"}
	require.Equal(k, late, k.history("a"))
	k.pass(2 * time.Hour)
	require.Equal(k, append(late, "fired 03 06:00:00", "fired 03 07:00:00"), k.history("a"))
	require.ElementsMatch(k, []string{"a 03 02:30:00", "a 03 06:00:00", "a 03 07:00:00"}, k.jobs())
}

// Rule: an hourly schedule that becomes daily while the program is stopped fires its latest hour, and
// then at the time of the day.
func hourlyToDaily(k *kit) {
	k.sync(hourly("a"))
	k.pass(150 * time.Minute)
	k.deploy(3*time.Hour, daily("a")) // until 05:30
	k.pass(24 * time.Hour)
	require.Equal(k, []string{"fired 01 01:00:00", "fired 01 02:00:00", "missed 01 03:00:00 to 01 04:00:00", "fired 01 05:00:00",
		"fired 02 02:30:00"}, k.history("a"))
	require.Len(k, k.jobs(), 4)
}

// Rule: a schedule that is removed from the code fires neither what was late nor what follows. Its
// history stays.
func removed(k *kit) {
	k.sync(hourly("a"), hourly("b"))
	k.pass(90 * time.Minute)
	k.deploy(2*time.Hour, hourly("b")) // until 03:30
	k.pass(24 * time.Hour)
	require.Equal(k, []string{"fired 01 01:00:00"}, k.history("a"))
	require.False(k, k.info("a").Retired.IsZero())
	require.Zero(k, k.info("a").Due)
	require.EqualValues(k, 26, k.info("b").Counts.Fired)
}

// Rule: a build that is rolled back continues with the terms of the earlier build. A schedule that only
// the earlier build has comes back and catches up, and one that only the later build has is retired. No
// tick fires twice.
func rolledBack(k *kit) {
	before := []schedule.Definition{hourly("a"), hourly("gone")}
	k.sync(before...)
	k.pass(90 * time.Minute)
	k.deploy(time.Hour, daily("a"), hourly("new")) // until 02:30; the tick of 02:00 is late
	k.pass(45 * time.Minute)
	k.deploy(time.Hour, before...) // until 04:15
	k.pass(time.Hour)
	require.Equal(k, []string{"fired 01 01:00:00", "fired 01 02:00:00", "fired 01 05:00:00"}, k.history("a"))
	require.Equal(k, []string{"fired 01 01:00:00", "missed 01 02:00:00 to 01 03:00:00", "fired 01 04:00:00", "fired 01 05:00:00"}, k.history("gone"))
	require.Equal(k, []string{"fired 01 03:00:00"}, k.history("new"))
	require.False(k, k.info("new").Retired.IsZero())
	seen := make(map[string]bool)
	for _, job := range k.jobs() {
		require.False(k, seen[job], "%s fired twice", job)
		seen[job] = true
	}
}

// Rule: a renamed schedule begins when it is renamed. It neither catches up for the old name nor waits
// for its jobs, and the old name is retired.
func renamed(k *kit) {
	k.sync(schedule.Job("old", "@hourly", report, "x"))
	k.pass(90 * time.Minute)
	k.deploy(2*time.Hour, schedule.Job("new", "@hourly", report, "x")) // until 03:30
	require.Empty(k, k.history("new"))
	k.pass(time.Hour)
	require.Equal(k, []string{"fired 01 04:00:00"}, k.history("new"))
	require.Equal(k, []string{"fired 01 01:00:00"}, k.history("old"))
	require.False(k, k.info("old").Retired.IsZero())
	require.ElementsMatch(k, []string{"old 01 01:00:00", "new 01 04:00:00"}, k.jobs())
}
