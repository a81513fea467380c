package top

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// A live app is read every second over one connection.
func TestLive(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 20)
	s.has("live", "12:03:04").tick().has("12:03:05").tick().has("12:03:06")
	require.Equal(t, slices.Repeat([]string{"stats", "list leased", "list dead"}, 3), s.queue.calls)
	require.Equal(t, 1, s.queue.opened)
	require.Zero(t, s.queue.closed)
	require.Equal(t, []time.Duration{time.Second, time.Second, time.Second}, s.waits)
	s.press("2")
	require.Equal(t, []string{"stats", "list leased"}, s.queue.calls[9:])
}

// A stopped app is a snapshot: nothing is read without a request, its file is never held between
// readings, and when the app is back, so is the live screen.
func TestStopped(t *testing.T) {
	queue := sampleQueue()
	process := queue.process
	queue.process, queue.done = nil, nil
	s := newScreen(t, queue, 100, 20)
	s.has("STOPPED – snapshot of 12:03:04  r reads again")
	s.queue.calls, s.waits = nil, nil
	held := func() int { return s.queue.opened - s.queue.closed }
	require.Zero(t, held())
	for range 5 {
		s.tick().has("snapshot of 12:03:04")
		require.Zero(t, held())
	}
	require.Empty(t, s.queue.calls, "looking whether the app is back reads nothing")
	require.Equal(t, stoppedRefresh, s.waits[0])
	s.press("r").has("snapshot of 12:03:09")
	s.press("4", "R", "y").has("ready again")
	require.Equal(t, []string{"retry …00000009"}, s.queue.changes())
	require.Zero(t, held())

	s.queue.process = process
	s.tick().has("live", "billing-api (pid 4121)", "12:03:10")
	require.Equal(t, 1, held())
	s.m.link.close()
	require.Zero(t, held())
}

// If an app goes away between two readings, its file is used in the same reading; if the app
// cannot be asked, the screen stays unchanged, says so, and tries again.
func TestAppGoesAway(t *testing.T) {
	app, file := sampleQueue(), sampleQueue()
	file.process, file.done = nil, nil
	s := newScreen(t, app, 100, 20)
	app.err = admin.ErrUnreachable
	s.m.link.open = file.open
	s.tick().has("STOPPED – snapshot of 12:03:05")
	require.Equal(t, 1, app.closed)

	file.openErr = bolt.ErrLocked // it starts, and has no server yet
	s.tick().has("NOT CURRENT – as it was at 12:03:05", "error: "+bolt.ErrLocked.Error(), "email")
	s.press("4", "j").has("NOT CURRENT")
	app.err = nil
	s.m.link.open = app.open
	s.tick().has("live", "[4 dead 4]").lacks("error:")
}

// Errors are shown and end nothing, even in the first reading.
func TestErrors(t *testing.T) {
	f := sampleQueue()
	f.openErr = errors.New("open jobs.db: no such file\nCheck --db.")
	s := newScreen(t, f, 100, 20)
	s.has("reading …", "error: open jobs.db: no such file; Check --db.")
	s.press("2", "j", "enter", "/", "x", "enter", "P", "R", "?", "esc", "esc").text()
	f.openErr = nil
	s.press("esc", "1").tick().has("live", "email").lacks("error:")
	f.err = errors.New("cannot")
	s.tick().has("NOT CURRENT", "error: cannot")
	f.err = nil
	s.tick().has("live").lacks("error:")
}

// A reading that does not finish is abandoned; the app is asked again later, over a new
// connection.
func TestTimeout(t *testing.T) {
	f := sampleQueue()
	l := &link{open: f.open, timeout: time.Millisecond}
	hang := func(ctx context.Context, _ admin.Admin) error { <-ctx.Done(); return ctx.Err() }
	err := l.use(context.Background(), hang)
	require.ErrorContains(t, err, "no answer within 1ms")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, f.closed)
	l.timeout = time.Minute
	require.NoError(t, l.use(context.Background(), func(context.Context, admin.Admin) error { return nil }))
	l.timeout = time.Millisecond
	require.ErrorIs(t, l.use(context.Background(), hang), context.DeadlineExceeded)
	require.Equal(t, 2, f.opened, "one that hangs has its file still, so nobody else is looked for")
	require.Equal(t, 2, f.closed)
}

// What opening a file has changed is shown on the screen, and nowhere else.
func TestNotices(t *testing.T) {
	f := sampleQueue()
	f.process, f.done = nil, nil
	s := newScreen(t, f, 120, 20)
	notices := []string{"3 leased jobs are ready again\x07", "the file was repaired"}
	s.m.link.open = func(_ context.Context, notice func(string)) (admin.Admin, error) {
		if len(notices) > 0 {
			notice(notices[0])
			notices = notices[1:]
		}
		return f, nil
	}
	s.press("P", "y").has(`queue default is paused; 3 leased jobs are ready again\x07; the file was repaired`)
}

// A reading for a pane that the user has left is not shown in another pane.
func TestLateReading(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 20)
	s.press("4")
	late := s.m.read() // of the dead
	s.m.reading = true
	s.press("2") // is read behind it
	_, next := s.m.Update(late())
	s.has("[2 running 2]").lacks("…00000009")
	s.do(next)
	s.has("[2 running 2]", "…00000004").lacks("…00000009")
	require.False(t, s.m.reading)
}

// Rates are the difference of two readings, and start over with a new process.
func TestRates(t *testing.T) {
	var r rates
	stats := func(pid int, succeeded, failed int64) admin.Stats {
		s := admin.Stats{Process: &admin.Process{PID: pid}, Done: map[string]admin.Done{"q": {Succeeded: succeeded, Failed: failed}}}
		s.Queues = sampleStats("q", "idle")
		return s
	}
	at := noon
	add := func(passed time.Duration, s admin.Stats) { at = at.Add(passed); r.add(s, at) }
	add(0, stats(1, 1000, 50))
	_, ok := r.mean("q")
	require.False(t, ok, "one reading is no rate")
	add(2*time.Second, stats(1, 1020, 54))
	mean, ok := r.mean("q")
	require.True(t, ok)
	require.Equal(t, sample{runs: 12, failed: 2}, mean)
	require.Equal(t, "       █", r.sparkline("q", 8))
	add(time.Second, stats(1, 1020, 54))
	add(time.Second, stats(1, 1026, 54))
	require.Equal(t, "     █▁▅", r.sparkline("q", 8))
	require.Equal(t, "▁█", r.sparkline("q", 2), "as high as the highest that is shown")
	require.Equal(t, "     ▁▁▁", r.sparkline("idle", 8))
	add(time.Millisecond, stats(1, 1027, 54))
	require.Len(t, r.samples["q"], 3, "too short a time to tell")
	add(time.Second, stats(2, 3, 0))
	_, ok = r.mean("q")
	require.False(t, ok, "another process counts from zero")
	add(time.Second, stats(2, 1, 0))
	mean, _ = r.mean("q")
	require.Zero(t, mean, "no rate is below nothing")
	for i := range int64(200) {
		add(time.Second, stats(2, 1+i, 0))
	}
	require.Len(t, r.samples["q"], keptSamples)
	r.add(admin.Stats{}, at)
	_, ok = r.mean("q")
	require.False(t, ok, "a file counts nothing")
}
