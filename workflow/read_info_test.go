package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

func (d *desk) info(run pawl.ID) Info {
	d.t.Helper()
	info, err := d.Info(d.t.Context(), run)
	require.NoError(d.t, err)
	return info
}

// The status of an open run follows from its job. A pause takes precedence over everything but
// the death of the job, and the row decides the status of a waiting job. A paused run has no time at which it
// continues by itself.
func TestStatusOfAnOpenRun(t *testing.T) {
	cases := []struct {
		job    pawl.State
		row    Status
		paused bool
		want   Status
		error  string
	}{
		{job: pawl.Ready, row: Running, want: Running},
		{job: pawl.Ready, row: Sleeping, want: Running},
		{job: pawl.Leased, row: Waiting, want: Running},
		{job: pawl.Delayed, row: Running, want: Running}, // to be retried
		{job: pawl.Delayed, row: Sleeping, want: Sleeping},
		{job: pawl.Delayed, row: Waiting, want: Waiting},
		{job: pawl.Delayed, row: Blocked, want: Blocked},
		{job: pawl.Delayed, row: Waiting, paused: true, want: Paused},
		{job: pawl.Leased, row: Running, paused: true, want: Paused},
		{job: pawl.Dead, row: Sleeping, want: Dead, error: "its job is a dead letter (permanent): disk on fire; Resume brings it back"},
		{job: pawl.Dead, row: Sleeping, paused: true, want: Dead, error: "disk on fire"},
		{job: "", row: Running, want: Dead, error: "its job is gone; Resume makes it anew"},
	}
	for _, c := range cases {
		d := newDesk(t)
		run := d.start("a")
		jobIn[c.job](d, run)
		d.edit(run, func(row *runRow) {
			row.Status, row.Paused, row.Due, row.Waits = c.row, c.paused, 7, []string{"news"}
		})
		info := d.info(run)
		require.Equal(t, c.want, info.Status, "%+v", c)
		if c.error == "" {
			require.Empty(t, info.Error)
		}
		require.Contains(t, info.Error, c.error)
		switch c.want {
		case Sleeping, Waiting:
			require.Equal(t, time.Unix(0, 7), info.Due)
			require.Equal(t, []string{"news"}, info.Waits)
		case Paused:
			require.Zero(t, info.Due, "no time ends a pause")
			require.Equal(t, []string{"news"}, info.Waits)
		default:
			require.Zero(t, info.Due)
			require.Nil(t, info.Waits)
		}
	}
}

// Once a run has ended, its job, requests to it and what it waited for do not matter.
func TestStatusOfARunThatHasEnded(t *testing.T) {
	for job, bring := range jobIn {
		for _, status := range []Status{Done, Failed, Cancelled, Terminated} {
			d := newDesk(t)
			run := d.start("a")
			bring(d, run)
			d.edit(run, func(row *runRow) { row.Cancel, row.Paused, row.Due, row.Error = "why", true, 7, "text" })
			d.end(run, status)
			info := d.info(run)
			require.Equal(t, status, info.Status, job)
			require.Empty(t, info.Cancelling)
			require.Zero(t, info.Due)
			require.Equal(t, "text", info.Error)
			require.True(t, d.now().Equal(info.Ended))
		}
	}
}

// Info has everything in the row.
func TestInfoIsWhatTheRowSays(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	parent, other := pawl.NewID(d.now()), pawl.NewID(d.now())
	d.suspend(run, Waiting, func(row *runRow) {
		row.Build, row.Due, row.Waits, row.Steps, row.Bytes = "1", 7, []string{"news"}, 5, 99
		row.Unread, row.Restarts, row.Cancel, row.Error = 2, 3, "why", "text"
		row.Parent, row.Forked = parent, other
	})
	require.Equal(t, Info{
		Run: run, Flow: "note", ID: "a", Status: Waiting, Queue: "paper", Build: "1",
		Created: d.now(), Retain: DefaultRetention, Cancelling: "why", Due: time.Unix(0, 7), Waits: []string{"news"},
		Unread: 2, Steps: 5, Bytes: 99, Restarts: 3, Error: "text", Parent: parent, Forked: other,
	}, d.info(run))
}

// between is a source whose Job runs a function before it answers.
type between struct {
	Source
	happens func()
}

func (s between) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	s.happens()
	return s.Source.Job(ctx, id)
}

// A run that ends while it is being read has ended. It is not dead, although its row was read before and its
// job afterwards. A run that is removed during the read does not exist.
func TestARunThatEndsMeanwhileIsNotDead(t *testing.T) {
	look := func(happens func(*desk, pawl.ID)) (*desk, *Reader, pawl.ID) {
		d := newDesk(t)
		run := d.start("a")
		l := d.lease(run)
		return d, Read(between{d.file, func() {
			require.NoError(t, d.file.Settle(t.Context(), l.Ack()))
			d.end(run, Done)
			happens(d, run)
		}}), run
	}
	_, r, run := look(func(*desk, pawl.ID) {})
	info, err := r.Info(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, Done, info.Status)

	remove := func(d *desk, _ pawl.ID) { d.pass(DefaultRetention); d.sweep(1000) }
	_, r, run = look(remove)
	_, err = r.Info(t.Context(), run)
	require.ErrorIs(t, err, ErrNotFound)
	_, r, _ = look(remove)
	listing, err := r.List(t.Context(), Filter{}, "", 10)
	require.NoError(t, err)
	require.Equal(t, Listing{}, listing)

	_, r, _ = look(func(*desk, pawl.ID) {})
	listing, err = r.List(t.Context(), Filter{Status: Running}, "", 10)
	require.NoError(t, err)
	require.Empty(t, listing.Runs, "the filter is about what is listed")
}

// A file that no process has open can be read completely, with the same results.
func TestReadingAStoppedFile(t *testing.T) {
	d := newDesk(t)
	run, done := d.start("a"), d.start("b")
	d.journal(run, forked()...)
	require.NoError(t, d.Send(t.Context(), run, "news", []byte("x"), ""))
	d.write(func(r rows) error {
		return firstError(r.put(tablePublished, runAnd(run, "percent"), []byte("40")), r.put(tableBlobs, seqKey(done, outputSeq), []byte("out")))
	})
	d.end(done, Done)

	read := func(r *Reader) (all []any) {
		add := func(v any, err error) {
			require.NoError(t, err)
			all = append(all, v)
		}
		ctx := t.Context()
		found, err := r.Find(ctx, "note", "b")
		add(found, err)
		info, err := r.Info(ctx, run)
		add(info, err)
		listing, err := r.List(ctx, Filter{}, "", 1)
		add(listing, err)
		journal, err := r.Journal(ctx, run, true)
		add(journal, err)
		input, err := r.Input(ctx, run)
		add(input, err)
		output, err := r.Output(ctx, done)
		add(output, err)
		signals, err := r.Signals(ctx, run)
		add(signals, err)
		published, err := r.Published(ctx, run)
		add(published, err)
		return all
	}
	live := read(d.Reader)
	require.NoError(t, d.file.Close())
	file, err := bolt.OpenReader(d.path)
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, live, read(Read(file)))
	require.Equal(t, []byte("out"), live[5])
	require.Len(t, live[3], len(forked()))
}

// If a job is retried because its writes failed, its run says why it waits.
func TestInfoHasWhyTheJobIsTriedAgain(t *testing.T) {
	since, until := time.Unix(100, 0), time.Unix(200, 0)
	row := &runRow{Flow: "f", ID: "a", Status: Running}
	job := &pawl.Envelope{State: pawl.Delayed, BackoffSince: since, NotBefore: until,
		History: []pawl.Failure{driver.NewFailure(1, since, "disk refused a write")}}
	i := row.openInfo(pawl.ID{1}, job)
	require.Equal(t, Sleeping, i.Status)
	require.Equal(t, until, i.Due)
	require.Contains(t, i.Error, "disk refused a write")

	row.Paused = true
	require.Equal(t, Paused, row.openInfo(pawl.ID{1}, job).Status)
}
