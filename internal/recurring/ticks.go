package recurring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/schedule"
)

// Rule: a schedule enqueues a job at each of its ticks, which the job can read.
func fires(k *kit) {
	k.sync(schedule.Job("a", "*/5 * * * *", report, "x", schedule.Overlap(schedule.Allow)))
	k.pass(11 * time.Minute)
	require.Equal(k, []string{"a 01 00:05:00", "a 01 00:10:00"}, k.jobs())
	require.Equal(k, []string{"fired 01 00:05:00", "fired 01 00:10:00"}, k.history("a"))
	require.EqualValues(k, 2, k.info("a").Counts.Fired)
}

// Rule: of several schedulers over one queue, one decides each tick.
func twins(k *kit) {
	d := []schedule.Definition{schedule.Job("a", "@every 1s", report, "x", schedule.Overlap(schedule.Allow), schedule.CatchUp(100))}
	all := []*schedule.Scheduler{k.scheduler(k.q), k.scheduler(k.q), k.scheduler(k.q)}
	for _, s := range all {
		require.NoError(k, s.Sync(k.Context(), d...))
	}
	k.pass(20 * time.Second)
	for _, s := range all {
		s.Close()
	}
	require.Len(k, k.jobs(), 20)
	require.Len(k, k.history("a"), 20)
}

// Rule: the same holds for several processes. When one ends, another decides. When one changes a
// schedule, another fires by the new terms.
func several(k *kit) {
	start := k.now()
	d := []schedule.Definition{schedule.Job("a", "@every 1s", report, "x", schedule.Overlap(schedule.Allow), schedule.CatchUp(100))}
	k.sync(d...)
	var all []*schedule.Scheduler
	for range 2 {
		q := k.store.Open(k, k.path, k.now)
		defer func() { require.NoError(k, q.Close()) }()
		s := k.scheduler(q)
		require.NoError(k, s.Sync(k.Context(), d...))
		all = append(all, s)
	}
	for _, s := range append(all, k.s) {
		k.pass(10 * time.Second)
		if s == k.s {
			require.NoError(k, k.s.Pause(k.Context(), "a", ""))
			require.NoError(k, k.s.Resume(k.Context(), "a", schedule.CatchUpPaused))
			k.pass(10 * time.Second)
		}
		s.Close()
	}
	ticks := make(map[string]bool)
	for _, job := range k.jobs() {
		require.False(k, ticks[job], "%s fired twice", job)
		ticks[job] = true
	}
	require.Len(k, ticks, int(k.now().Sub(start)/time.Second))
}

// Rule: the history keeps the latest entries.
func history(k *kit) {
	d := schedule.Job("a", "@every 1s", report, "x", schedule.Overlap(schedule.Allow), schedule.CatchUp(1000))
	k.sync(d)
	k.pass(schedule.MaxHistory*time.Second + 3500*time.Millisecond)
	list, err := k.s.History(k.Context(), "a", 0)
	require.NoError(k, err)
	require.Len(k, list, schedule.MaxHistory)
	require.EqualValues(k, 4, list[0].N)
	list, err = k.s.History(k.Context(), "a", schedule.MaxHistory+1)
	require.NoError(k, err)
	require.Len(k, list, 2)

	k.close() // many at a time
	k.pass(schedule.MaxHistory * time.Second)
	k.open()
	k.sync(d)
	list, err = k.s.History(k.Context(), "a", 0)
	require.NoError(k, err)
	require.Len(k, list, schedule.MaxHistory)
	require.EqualValues(k, schedule.MaxHistory+4, list[0].N)
}

// Rule: ticks that nobody was there for fire as the terms say, and the others are missed.
func (s Store) catchesUp(t *testing.T) {
	for name, c := range map[string]struct {
		opts []schedule.Option
		want []string
	}{
		"none":   {[]schedule.Option{schedule.CatchUp(schedule.None)}, []string{"missed 01 01:00:00 to 01 05:00:00"}},
		"latest": {nil, []string{"missed 01 01:00:00 to 01 04:00:00", "fired 01 05:00:00"}},
		"two": {[]schedule.Option{schedule.CatchUp(2), schedule.Overlap(schedule.Allow)},
			[]string{"missed 01 01:00:00 to 01 03:00:00", "fired 01 04:00:00", "fired 01 05:00:00"}},
		"buffer": {[]schedule.Option{schedule.CatchUp(3), schedule.Overlap(schedule.Buffer), schedule.BufferLimit(2)},
			[]string{"missed 01 01:00:00 to 01 02:00:00", "fired 01 03:00:00", "buffered 01 04:00:00", "buffered 01 05:00:00"}},
		"window": {[]schedule.Option{schedule.CatchUp(5), schedule.Overlap(schedule.Allow), schedule.Window(45 * time.Minute)},
			[]string{"missed 01 01:00:00 to 01 04:00:00", "fired 01 05:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.bubble(t, func(k *kit) {
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
