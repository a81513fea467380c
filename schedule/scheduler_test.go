package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/schedule"
)

// Rule: a schedule enqueues a job at each of its ticks, which the job can read.
func TestFires(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sync(schedule.Job("a", "*/5 * * * *", report, "x", schedule.Overlap(schedule.Allow)))
		k.pass(11 * time.Minute)
		require.Equal(t, []string{"a 01 00:05:00", "a 01 00:10:00"}, k.jobs())
		require.Equal(t, []string{"fired 01 00:05:00", "fired 01 00:10:00"}, k.history("a"))
		require.EqualValues(t, 2, k.info("a").Counts.Fired)
	})
}

// Rule: ticks that nobody was there for fire as the terms say, and the others are missed.
func TestCatchUp(t *testing.T) {
	for name, c := range map[string]struct {
		opts []schedule.Option
		want []string
	}{
		"none":   {[]schedule.Option{schedule.CatchUp(schedule.None)}, []string{"missed 01 01:00:00 to 01 05:00:00"}},
		"latest": {nil, []string{"missed 01 01:00:00 to 01 04:00:00", "fired 01 05:00:00"}},
		"two": {[]schedule.Option{schedule.CatchUp(2), schedule.Overlap(schedule.Allow)},
			[]string{"missed 01 01:00:00 to 01 03:00:00", "fired 01 04:00:00", "fired 01 05:00:00"}},
		"window": {[]schedule.Option{schedule.CatchUp(5), schedule.Overlap(schedule.Allow), schedule.Window(45 * time.Minute)},
			[]string{"missed 01 01:00:00 to 01 04:00:00", "fired 01 05:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				d := schedule.Job("a", "@hourly", report, "x", c.opts...)
				k.sync(d)
				k.close()
				k.pass(5*time.Hour + 30*time.Minute)
				k.open()
				k.sync(d)
				require.Equal(t, c.want, k.history("a"))
			})
		})
	}
}
