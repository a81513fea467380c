package recurring

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

func hourly(name string, opts ...schedule.Option) schedule.Definition {
	return schedule.Job(name, "@hourly", report, "x", append([]schedule.Option{schedule.Overlap(schedule.Allow)}, opts...)...)
}

// Rule: a paused schedule fires nothing, also after a restart. Its ticks are decided when it goes on.
func pauses(k *kit) {
	k.sync(hourly("a"), hourly("b"))
	for _, name := range []string{"a", "b"} {
		require.NoError(k, k.s.Pause(k.Context(), name, "the printer burns"))
	}
	k.pass(150 * time.Minute)
	k.close()
	k.open()
	k.sync(hourly("a"), hourly("b"))
	require.Equal(k, "the printer burns", k.info("a").Note)
	require.Empty(k, k.jobs())

	require.NoError(k, k.s.Resume(k.Context(), "a", schedule.SkipPaused))
	require.NoError(k, k.s.Resume(k.Context(), "b", schedule.CatchUpPaused))
	k.pass(time.Second)
	require.Equal(k, []string{"paused 01 01:00:00 to 01 02:00:00"}, k.history("a"))
	require.Equal(k, []string{"missed 01 01:00:00", "fired 01 02:00:00"}, k.history("b"))
	require.ErrorIs(k, k.s.Pause(k.Context(), "c", ""), pawl.ErrNotFound)
}

// Rule: a Sync neither touches nor takes over schedules of operators. They replace and remove their own.
func puts(k *kit) {
	k.sync(hourly("code"))
	require.NoError(k, k.s.Put(k.Context(), hourly("own")))
	k.sync(hourly("code"))
	require.Zero(k, k.info("own").Retired)
	require.ErrorIs(k, k.s.Sync(k.Context(), hourly("own")), pawl.ErrConflict)
	require.ErrorIs(k, k.s.Put(k.Context(), hourly("code")), pawl.ErrConflict)

	require.NoError(k, k.s.Put(k.Context(), schedule.Envelope("own", "@daily", &pawl.Envelope{Kind: "report"})))
	require.Equal(k, "@daily", k.info("own").Terms.Spec)
	k.pass(25 * time.Hour)
	require.Contains(k, k.jobs(), "own 02 00:00:00")

	require.ErrorContains(k, k.s.Remove(k.Context(), "code"), "remove it from the code, or pause it")
	require.NoError(k, k.s.Remove(k.Context(), "own"))
	_, err := k.s.Get(k.Context(), "own")
	require.ErrorIs(k, err, schedule.ErrNotFound)
	list, err := k.s.List(k.Context(), "", 10)
	require.NoError(k, err)
	require.Len(k, list, 1)
	list, err = k.s.List(k.Context(), "code", 10)
	require.NoError(k, err)
	require.Empty(k, list)
}

// Rule: the terms of an operator win over those of the program until they are reset.
func overrides(k *kit) {
	k.sync(hourly("a"))
	k.pass(90 * time.Minute)
	terms := k.info("a").Terms
	terms.Spec = "*/20 * * * *"
	require.NoError(k, k.s.Set(k.Context(), "a", terms))
	k.sync(schedule.Job("a", "@daily", report, "x"))
	info := k.info("a")
	require.True(k, info.Override)
	require.Equal(k, "@daily", info.Defined.Spec)
	k.pass(15 * time.Minute)
	require.NoError(k, k.s.Reset(k.Context(), "a"))
	k.pass(2 * time.Hour)
	require.Equal(k, []string{"fired 01 01:00:00", "fired 01 01:40:00"}, k.history("a"))

	terms.Overlap = "never"
	require.ErrorIs(k, k.s.Set(k.Context(), "a", terms), pawl.ErrInvalid)
}

// Rule: a trigger fires at once, whatever else is alive, and moves no tick.
func triggers(k *kit) {
	k.sync(schedule.Job("a", "@hourly", report, "x"))
	k.pass(30 * time.Minute)
	for range 2 {
		id, err := k.s.Trigger(k.Context(), "a")
		require.NoError(k, err)
		e, err := k.q.Job(k.Context(), id)
		require.NoError(k, err)
		tick, ok := schedule.TickOf(e)
		require.True(k, ok)
		require.True(k, tick.Manual)
	}
	k.pass(31 * time.Minute)
	require.Equal(k, []string{"fired 01 00:30:00", "fired 01 00:30:00", "skipped 01 01:00:00"}, k.history("a"))
	_, err := k.s.Trigger(k.Context(), "b")
	require.ErrorIs(k, err, pawl.ErrNotFound)
}

// Rule: a backfill fires the ticks of a period that are decided, up to a number of them. The latest decided tick is one
// of them, and the period may end after it, as long as it has no later tick.
func backfills(k *kit) {
	k.sync(hourly("a"))
	k.pass(210 * time.Minute)
	start := k.info("a").Created
	n, err := k.s.Backfill(k.Context(), "a", start.Add(time.Second), start.Add(150*time.Minute), 5)
	require.NoError(k, err)
	require.Equal(k, 2, n)
	require.Len(k, k.jobs(), 5)
	_, err = k.s.Backfill(k.Context(), "a", start.Add(-10*time.Hour), start, 5)
	require.ErrorContains(k, err, "more than 5 ticks")
	_, err = k.s.Backfill(k.Context(), "a", start, start.Add(10*time.Hour), 50)
	require.ErrorContains(k, err, "the tick of 2000-01-01T04:00:00Z is not decided yet; end the period at that time")
	latest := start.Add(3 * time.Hour)
	require.True(k, latest.Equal(k.info("a").Last))
	for _, to := range []time.Time{latest.Add(time.Second), start.Add(4 * time.Hour)} {
		n, err = k.s.Backfill(k.Context(), "a", latest, to, 5)
		require.NoError(k, err)
		require.Equal(k, 1, n)
	}
	require.Len(k, k.jobs(), 7)
}

// Rule: a schedule that left the code fires nothing. It comes back with its catch-up, until it is
// forgotten. If its expression changed, the old ticks count as missed.
func retires(k *kit) {
	k.sync(hourly("a"), hourly("b"), hourly("c"))
	k.sync(hourly("c"))
	k.pass(150 * time.Minute)
	k.sync(hourly("a"), schedule.Job("b", "@daily", report, "x"))
	require.Equal(k, []string{"missed 01 01:00:00", "fired 01 02:00:00"}, k.history("a"))
	require.Equal(k, []string{"missed 01 01:00:00 to 01 02:00:00"}, k.history("b"))
	require.False(k, k.info("c").Retired.IsZero())
	require.NoError(k, k.s.Pause(k.Context(), "a", ""))
	k.offset.Add(int64(31 * 24 * time.Hour))
	k.sync(schedule.Job("b", "@daily", report, "x"))
	_, err := k.s.Get(k.Context(), "c")
	require.ErrorIs(k, err, pawl.ErrNotFound)
}

// Rule: a wrong definition is refused with its reason, and changes nothing.
func refuses(k *kit) {
	k.sync(hourly("a"))
	for _, c := range []struct {
		d    schedule.Definition
		want string
	}{
		{hourly(""), "empty"},
		{hourly("a/b"), "slash"},
		{hourly(strings.Repeat("a", 129)), "longer than 128"},
		{schedule.Job("b", "61 * * * *", report, "x"), "61 is not in 0-59"},
		{hourly("b", schedule.In("Europe/Berlim")), `"Europe/Berlim" is unknown; Europe/Berlin?`},
		{schedule.Job("b", "@open", report, "x", schedule.Spread(time.Second)), "has no effect on @open"},
		{hourly("b", schedule.In("Local")), "differs between machines"},
		{schedule.Job("b", "TZ=Asia/Tokyo 0 0 * * *", report, "x", schedule.In("UTC")), "leave one out"},
		{hourly("b", schedule.CatchUp(-1)), "not between 0 and"},
		{hourly("b", schedule.CatchUp(2), schedule.Overlap(schedule.Skip)), "only one of 2 late ticks would fire"},
		{hourly("b", schedule.CatchUp(4), schedule.Overlap(schedule.Buffer), schedule.BufferLimit(2)), "only 3 of 4 late ticks would fire"},
		{hourly("b", schedule.Spread(31*time.Minute)), "more than half of the interval of 1h0m0s"},
		{hourly("b", schedule.Overlap("x")), `"x" is not one of`},
		{hourly("b", schedule.Overlap(schedule.TerminateOther)), "only a run of a workflow"},
		{hourly("b", schedule.BufferLimit(2)), "with overlap policy buffer alone"},
		{hourly("b", schedule.With(pawl.Delay(time.Hour))), "it has a delay"},
		{hourly("b", schedule.With(pawl.Unique("x"))), "it has a unique key"},
		{hourly("b", schedule.With(pawl.IdempotencyKey("x"))), "it has an idempotency key"},
		{hourly("b", schedule.With(pawl.InGroup("x"))), "it has a group"},
	} {
		err := k.s.Sync(k.Context(), c.d)
		require.ErrorIs(k, err, pawl.ErrInvalid)
		require.ErrorContains(k, err, c.want)
	}
	require.ErrorContains(k, k.s.Sync(k.Context(), hourly("b"), hourly("b")), "two have the name")
	require.Zero(k, k.info("a").Retired)

	_, err := schedule.Open(bare{k.q}, nil)
	require.ErrorIs(k, err, pawl.ErrUnsupported)
	require.ErrorContains(k, err, "a recurring.bare does not")
}

// bare is a queue without rows.
type bare struct{ pawl.Queue }

// Rule: if the clock is set back, no tick is decided again. If it was ahead by more than a day, the
// schedule begins anew.
func clockIsSetBack(k *kit) {
	k.sync(hourly("a"))
	k.offset.Add(int64(10 * time.Hour))
	k.pass(2 * time.Minute)
	k.offset.Add(-int64(10 * time.Hour))
	k.pass(9 * time.Hour)
	require.Equal(k, []string{"missed 01 01:00:00 to 01 09:00:00", "fired 01 10:00:00"}, k.history("a"))

	k.offset.Add(int64(48 * time.Hour))
	k.pass(2 * time.Minute)
	k.offset.Add(-int64(48 * time.Hour))
	k.pass(2 * time.Hour)
	lines := k.history("a")
	require.Equal(k, []string{"fired 03 09:00:00", "clock 03 09:00:00", "fired 01 10:00:00", "fired 01 11:00:00"}, lines[len(lines)-4:])
}

var _ testing.TB = (*kit)(nil)

// Rule: a schedule that is moved continues where it ended, with its history, and catches up.
func moves(k *kit) {
	k.sync()
	require.NoError(k, k.s.Put(k.Context(), schedule.Job("a", "@hourly", report, "x")))
	require.NoError(k, k.s.Put(k.Context(), hourly("b")))
	k.pass(150 * time.Minute)
	before, history := k.info("a"), k.history("a")
	rows, err := k.s.Rows(k.Context(), "", 10)
	require.NoError(k, err)
	require.Len(k, rows, 2)
	require.ErrorIs(k, k.s.RestoreRows(k.Context(), &rows[0]), pawl.ErrConflict)
	require.NoError(k, k.s.Remove(k.Context(), "a"))
	k.pass(time.Hour)
	require.NoError(k, rows[0].Rename(func(id pawl.ID) pawl.ID { return id }))
	require.NoError(k, k.s.RestoreRows(k.Context(), &rows[0]))
	require.Equal(k, before.Alive, k.info("a").Alive)
	k.pass(time.Second)
	require.Equal(k, append(history[:1:1], "skipped 01 02:00:00 to 01 03:00:00"), k.history("a"))
	rows[0].Row[0] ^= 0xff
	require.ErrorIs(k, schedule.CheckRows(&rows[0]), pawl.ErrInvalid)
}

// Rule: a long pause ends like a short one.
func longPause(k *kit) {
	k.sync(schedule.Job("a", "@every 1m", report, "x"), schedule.Job("b", "@every 1m", report, "x"))
	for _, name := range []string{"a", "b"} {
		require.NoError(k, k.s.Pause(k.Context(), name, ""))
	}
	k.pass(100 * time.Hour)
	require.NoError(k, k.s.Resume(k.Context(), "a", schedule.SkipPaused))
	terms := k.info("b").Terms
	terms.Spec = "@hourly"
	require.NoError(k, k.s.Set(k.Context(), "b", terms))
	for _, name := range []string{"a", "b"} {
		require.EqualValues(k, 6000, k.info(name).Counts.Paused)
		require.Equal(k, []string{"paused 01 00:01:00 to 05 04:00:00"}, k.history(name))
	}
	k.pass(time.Minute)
	require.EqualValues(k, 1, k.info("a").Counts.Fired)
}

// Rule: @open happens once in each life of a process that opens the queue, as its overlap policy says,
// and not while the schedule is paused.
func opens(k *kit) {
	d := []schedule.Definition{
		schedule.Job("a", "TZ=Europe/Berlin @open", report, "x", schedule.Overlap(schedule.Allow)),
		schedule.Job("b", "@open", report, "x"), schedule.Job("c", "@open", report, "x"), hourly("d"),
	}
	k.sync(d[0], d[1], d[3])
	other := k.scheduler(k.q)
	require.NoError(k, other.Sync(k.Context(), d...))
	k.pass(150 * time.Minute)
	other.Close()
	require.NoError(k, k.s.Pause(k.Context(), "c", ""))
	k.close()
	k.pass(time.Hour)
	k.open()
	k.sync(d...)
	k.pass(time.Minute)
	a, b := []string{"fired 01 00:00:00", "fired 01 03:30:00"}, []string{"fired 01 00:00:00", "skipped 01 03:30:00"}
	if k.store.Lasts { // one life
		a, b = a[:1], b[:1]
	}
	require.Equal(k, a, k.history("a"))
	require.Equal(k, b, k.history("b"))
	require.Equal(k, []string{"fired 01 00:00:00"}, k.history("c"))
	require.Zero(k, k.info("a").Due)
	require.Zero(k, k.info("a").Next)
}
