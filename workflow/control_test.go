package workflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// verbs are the operator's verbs that need no other argument.
var verbs = map[string]func(*Engine, context.Context, pawl.ID) error{
	"cancel":    func(e *Engine, ctx context.Context, run pawl.ID) error { return e.Cancel(ctx, run, "why") },
	"terminate": func(e *Engine, ctx context.Context, run pawl.ID) error { return e.Terminate(ctx, run, "why") },
	"pause":     func(e *Engine, ctx context.Context, run pawl.ID) error { return e.Pause(ctx, run) },
	"resume":    func(e *Engine, ctx context.Context, run pawl.ID) error { return e.Resume(ctx, run) },
}

// A request makes a waiting or dead job ready, recreates a missing job, and leaves an active
// job alone. Pause leaves all jobs alone.
func TestRequestsMakeTheJobReady(t *testing.T) {
	after := map[pawl.State]pawl.State{
		pawl.Ready: pawl.Ready, pawl.Leased: pawl.Leased,
		pawl.Delayed: pawl.Ready, pawl.Dead: pawl.Ready, "": pawl.Ready,
	}
	for verb, do := range verbs {
		for before, bring := range jobIn {
			t.Run(fmt.Sprintf("%s/%s", verb, before), func(t *testing.T) {
				d := newDesk(t)
				run := d.start("a")
				bring(d, run)
				require.Equal(t, before, d.jobState(run))
				require.NoError(t, do(d.Engine, t.Context(), run))
				if verb == "pause" {
					require.Equal(t, before, d.jobState(run))
				} else {
					require.Equal(t, after[before], d.jobState(run))
				}
			})
		}
	}
}

// The new job of a run that has lost its job equals the first, whether this process has the
// flow or not.
func TestTheJobMadeAnewIsAsTheFirst(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			keys, err := pawl.NewKeyring("k", map[string][]byte{"k": []byte(strings.Repeat("s", pawl.MinSecretBytes))})
			require.NoError(t, err)
			d := newDesk(t)
			d.Engine.opts.Sign = keys
			if known {
				d.hub.flows.Store(note.Name(), note)
			}
			run := d.start("a")
			first, err := d.file.Job(t.Context(), run)
			require.NoError(t, err)
			jobIn[""](d, run)

			require.NoError(t, d.Resume(t.Context(), run))
			again, err := d.file.Job(t.Context(), run)
			require.NoError(t, err)
			require.Equal(t, first.ID, again.ID)
			require.Equal(t, "paper", again.Queue)
			require.Equal(t, first.Kind, again.Kind)
			require.Equal(t, first.Payload, again.Payload)
			require.Equal(t, first.MaxRetries, again.MaxRetries)
			require.NoError(t, keys.Verify(again))
			if known {
				require.Equal(t, first.Priority, again.Priority)
			}
		})
	}
}

// No verb changes a run that has ended or does not exist: neither its row nor its job.
func TestRequestsToWhatHasEndedAreRefused(t *testing.T) {
	for _, status := range []Status{Done, Failed, Cancelled, Terminated} {
		d := newDesk(t)
		run := d.start("a")
		jobIn[pawl.Delayed](d, run)
		d.end(run, status)
		before := d.read(run)
		for verb, do := range verbs {
			require.ErrorIs(t, do(d.Engine, t.Context(), run), ErrNotRunning, "%s %s", verb, status)
			require.ErrorIs(t, do(d.Engine, t.Context(), pawl.NewID(d.now())), ErrNotFound, verb)
		}
		require.Equal(t, before, d.read(run))
		require.Equal(t, pawl.Delayed, d.jobState(run))
	}
	empty := newDesk(t)
	for verb, do := range verbs { // there are no buckets either
		require.ErrorIs(t, do(empty.Engine, t.Context(), pawl.NewID(empty.now())), ErrNotFound, verb)
	}
}

// If several callers cancel a run, the first sets the reason, and the others get no error.
func TestTheFirstReasonStays(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	require.NoError(t, d.Cancel(t.Context(), run, "first"))
	require.NoError(t, d.Cancel(t.Context(), run, "second"))
	require.Equal(t, "first", d.read(run).Cancel)

	require.NoError(t, d.Terminate(t.Context(), run, "third"))
	require.NoError(t, d.Terminate(t.Context(), run, "fourth"))
	require.NoError(t, d.Cancel(t.Context(), run, "fifth"))
	row := d.read(run)
	require.Equal(t, "third", row.Terminate)
	require.Equal(t, "first", row.Cancel)
	info, err := d.Info(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, "third", info.Cancelling, "terminate wins")
}

// A second Cancel does not shorten the wait between two undo attempts, but it restores a run
// that died during the undo.
func TestCancelAgain(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	require.NoError(t, d.Cancel(t.Context(), run, "why"))
	d.suspend(run, Sleeping, nil)
	require.NoError(t, d.Cancel(t.Context(), run, "why"))
	require.Equal(t, pawl.Delayed, d.jobState(run))

	require.NoError(t, d.file.Cancel(t.Context(), run))
	require.Equal(t, pawl.Dead, d.jobState(run))
	require.NoError(t, d.Cancel(t.Context(), run, "why"))
	require.Equal(t, pawl.Ready, d.jobState(run))
}

// There is always a reason, since the reason marks the run as ending, and it is never long.
func TestReasons(t *testing.T) {
	d := newDesk(t)
	a, b := d.start("a"), d.start("b")
	require.NoError(t, d.Cancel(t.Context(), a, ""))
	require.Equal(t, noReason, d.read(a).Cancel)
	require.NoError(t, d.Terminate(t.Context(), b, strings.Repeat("x", 2*maxErrorText)))
	require.Len(t, d.read(b).Terminate, maxErrorText)
}

// Cancel and Terminate end the pause of a run, and a run that is ending cannot be paused.
func TestToEndWinsOverPause(t *testing.T) {
	for _, verb := range []string{"cancel", "terminate"} {
		d := newDesk(t)
		run := d.start("a")
		jobIn[pawl.Delayed](d, run)
		require.NoError(t, d.Pause(t.Context(), run))
		require.True(t, d.read(run).Paused)
		require.NoError(t, verbs[verb](d.Engine, t.Context(), run))
		require.False(t, d.read(run).Paused)
		require.Equal(t, pawl.Ready, d.jobState(run))
		require.ErrorIs(t, d.Pause(t.Context(), run), pawl.ErrConflict)
		require.False(t, d.read(run).Paused)
	}
}

// Pause and Resume may be repeated, and change only the flag of a waiting run.
func TestPauseAndResume(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.suspend(run, Waiting, func(row *runRow) { row.Waits, row.Due = []string{"approved"}, 7 })
	for range 2 {
		require.NoError(t, d.Pause(t.Context(), run))
		row := d.read(run)
		require.True(t, row.Paused)
		require.Equal(t, Waiting, row.Status)
		require.Equal(t, []string{"approved"}, row.Waits)
	}
	for range 2 {
		require.NoError(t, d.Resume(t.Context(), run))
		require.False(t, d.read(run).Paused)
		require.Equal(t, pawl.Ready, d.jobState(run))
	}
}

// An operator who makes a blocked run ready makes it try again: it is no longer blocked.
func TestRequestsUnblock(t *testing.T) {
	for _, verb := range []string{"cancel", "terminate", "resume"} {
		d := newDesk(t)
		run := d.start("a")
		d.block(run, deskBuild)
		require.NoError(t, verbs[verb](d.Engine, t.Context(), run), verb)
		row := d.read(run)
		require.Equal(t, Running, row.Status, verb)
		require.Empty(t, row.Error, verb)
		require.Empty(t, d.blocked(run), verb)
		require.Equal(t, pawl.Ready, d.jobState(run), verb)
	}
	d := newDesk(t)
	run := d.start("a")
	d.block(run, deskBuild)
	require.NoError(t, d.Pause(t.Context(), run))
	require.Equal(t, Blocked, d.read(run).Status)
	require.Equal(t, deskBuild, d.blocked(run))
}

// A request is durable: the next process that opens the file finds it.
func TestRequestsOutliveTheProcess(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	jobIn[pawl.Delayed](d, run)
	require.NoError(t, d.Cancel(t.Context(), run, "why"))
	require.NoError(t, d.file.Close())
	d.open()
	require.Equal(t, "why", d.read(run).Cancel)
	require.Equal(t, pawl.Ready, d.jobState(run))
}

// A run that a worker has is notified immediately: the context of its current step ends.
func TestRequestsReachAStepUnderWay(t *testing.T) {
	for verb, status := range map[string]Status{"cancel": Cancelled, "terminate": Terminated} {
		t.Run(verb, func(t *testing.T) {
			d := newDesk(t)
			begun := make(chan struct{})
			endless := Define("endless", func(r *Run, _ int) (int, error) {
				return Step(r, "wait", func(ctx context.Context) (int, error) {
					close(begun)
					<-ctx.Done()
					return 0, ctx.Err()
				})
			})
			w := worker.New(d.file, nil)
			require.NoError(t, d.Handle(t.Context(), w, endless))
			ctx, stop := context.WithCancel(t.Context())
			stopped := make(chan error)
			go func() { stopped <- w.Run(ctx) }()
			h, err := endless.Start(t.Context(), d.Engine, "a", 1)
			require.NoError(t, err)
			<-begun
			require.NoError(t, verbs[verb](d.Engine, t.Context(), h.Run()))
			_, err = h.Result(t.Context())
			var ended *RunError
			require.ErrorAs(t, err, &ended)
			require.Equal(t, status, ended.Status)
			stop()
			<-stopped
		})
	}
}

// undone fails the transaction of a mutation after its Apply.
type undone struct{ driver.Mutation }

func (m undone) Apply(w driver.Writer) error {
	return errors.Join(m.Mutation.Apply(w), io.ErrUnexpectedEOF)
}

// Rule: a request keeps nothing of an undone transaction.
func TestRequestRunsAgain(t *testing.T) {
	d := newDesk(t)
	run := d.start("1")
	d.suspend(run, Sleeping, nil)
	e := &entry{seq: 1, Name: "s", Kind: KindStep, State: EntryPending, Attempts: 1, Error: "no", Due: d.now().Add(time.Hour).UnixNano()}
	put := func(e *entry) {
		d.write(func(r rows) error { var j journal; j.add(run, e); return j.apply(r) })
	}
	put(e)
	q := &request{engine: d.Engine, run: run, failed: []uint32{1}, change: func(*runRow) (urge, error) { return runNow | revive, nil }}
	require.ErrorIs(t, d.file.Mutate(t.Context(), undone{q}, 0), io.ErrUnexpectedEOF)
	require.NoError(t, d.file.RunNow(t.Context(), run))
	d.lease(run) // it continues, and its step is done
	done := *e
	done.finish([]byte{0xc0}, d.now())
	put(&done)
	require.NoError(t, d.file.Mutate(t.Context(), q, 0))
	require.NoError(t, d.file.ViewRows(t.Context(), func(r driver.Reader) error {
		now, err := rowsOf(r).entry(run, 1)
		require.Equal(t, EntryDone, now.State)
		return err
	}))
}

// Rule: a damaged row is damage, and no invalid argument of who asks for the run.
func TestDamageIsNoInvalidArgument(t *testing.T) {
	d := newDesk(t)
	run := d.start("1")
	d.write(func(r rows) error {
		content, err := driver.EncodePayload(map[string]any{"Parent": "no ID"})
		if err != nil {
			return err
		}
		return r.put(tableRuns, run[:], content)
	})
	_, err := d.Info(t.Context(), run)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.NotErrorIs(t, err, pawl.ErrInvalid)
	require.NotErrorIs(t, err, pawl.ErrPayloadEncoding)
}
