package workflow

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
)

// desk is an engine over a queue whose clock the test sets. It has no worker: tests write by
// hand what a worker would leave behind.
type desk struct {
	*Engine
	t     *testing.T
	file  *bolt.Queue // the engine's store
	path  string
	clock *atomic.Int64
}

// deskBuild is the build of a desk's engine.
const deskBuild = "2"

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, path: filepath.Join(memdir.New(t), "jobs.db"), clock: new(atomic.Int64)}
	d.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	d.open()
	return d
}

// open opens the file, and checks and closes it at the end of the test.
func (d *desk) open() {
	d.t.Helper()
	q, err := bolt.Open(d.path, &bolt.Options{Now: d.now, Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { d.close(q) })
	d.file = q
	d.Engine = Open(q, &Options{Build: deskBuild, Logger: hclog.NewNullLogger()})
}

func (d *desk) close(q *bolt.Queue) {
	if err := q.Check(context.Background()); err != nil {
		require.ErrorIs(d.t, err, pawl.ErrClosed)
	}
	require.NoError(d.t, q.Close())
}

func (d *desk) now() time.Time { return time.Unix(0, d.clock.Load()) }

// pass advances time.
func (d *desk) pass(by time.Duration) { d.clock.Add(int64(by)) }

// note is the flow of a desk's runs. Nothing runs it.
var note = Define("note", func(*Run, string) (string, error) { return "", nil }, OnQueue("paper"), Priority(3))

// start starts a run of note.
func (d *desk) start(id string) pawl.ID {
	d.t.Helper()
	h, err := note.Start(d.t.Context(), d.Engine, id, "input of "+id)
	require.NoError(d.t, err)
	return h.Run()
}

// byHand is a mutation of a test.
type byHand struct {
	check func(driver.Ops) error
	apply func(rows) error
}

func (h byHand) Check(p driver.Ops) error {
	if h.check == nil {
		return nil
	}
	return h.check(p)
}

func (h byHand) Apply(tx driver.Writer) error {
	if h.apply == nil {
		return nil
	}
	return h.apply(rowsTo(tx))
}

// write changes rows.
func (d *desk) write(fn func(rows) error) {
	d.t.Helper()
	require.NoError(d.t, d.file.Mutate(d.t.Context(), byHand{apply: fn}, 0))
}

// edit changes the row of a run.
func (d *desk) edit(run pawl.ID, change func(*runRow)) {
	d.t.Helper()
	d.write(func(r rows) error {
		row, err := r.mustRun(run)
		if err != nil {
			return err
		}
		change(row)
		return r.putRun(run, row)
	})
}

// lease leases the job of a run, which must be the only ready job.
func (d *desk) lease(run pawl.ID) *pawl.Lease {
	d.t.Helper()
	leases, err := d.file.Fetch(d.t.Context(), pawl.Request{Queues: []string{"paper"}, Max: 1, Wait: pawl.WaitNot})
	require.NoError(d.t, err)
	require.Len(d.t, leases, 1)
	require.Equal(d.t, run, leases[0].ID)
	return leases[0]
}

// suspend makes a ready run wait with the given status, and applies a further change to its
// row.
func (d *desk) suspend(run pawl.ID, status Status, change func(*runRow)) {
	d.t.Helper()
	l := d.lease(run)
	require.NoError(d.t, d.file.Mutate(d.t.Context(), byHand{
		check: func(p driver.Ops) error { return p.Snooze(l, p.Now().Add(forever)) },
		apply: func(r rows) error {
			row, err := r.mustRun(run)
			if err != nil {
				return err
			}
			row.Status = status
			if change != nil {
				change(row)
			}
			return r.putRun(run, row)
		},
	}, 0))
}

// block makes a ready run wait as a build does that blocks it.
func (d *desk) block(run pawl.ID, build string) {
	d.t.Helper()
	d.suspend(run, Blocked, func(row *runRow) { row.Error = "does not fit" })
	d.write(func(r rows) error { return r.put(tableBlocked, run[:], []byte(build)) })
}

// end ends a run, whatever its job does, and keeps it for the retention in its row.
func (d *desk) end(run pawl.ID, status Status) {
	d.t.Helper()
	d.write(func(r rows) error {
		row, err := r.mustRun(run)
		if err != nil {
			return err
		}
		row.Status, row.Ended = status, d.clock.Load()
		if until := row.keptUntil(); !until.IsZero() {
			if err := r.put(tableEnded, endedKey(until, run), nil); err != nil {
				return err
			}
		}
		return r.putRun(run, row)
	})
}

// journal writes the entries of a run's journal, numbered from 1.
func (d *desk) journal(run pawl.ID, entries ...*entry) {
	d.t.Helper()
	d.write(func(r rows) error {
		var j journal
		for i, e := range entries {
			if e.seq = uint32(i + 1); e.Occurrence == 0 {
				e.Occurrence = 1
			}
			e.Size = len(e.Result)
			j.add(run, e)
		}
		return j.apply(r)
	})
}

// jobState returns the state of a run's job, or "" if it is gone.
func (d *desk) jobState(run pawl.ID) (state pawl.State) {
	d.t.Helper()
	require.NoError(d.t, d.file.Mutate(d.t.Context(), byHand{check: func(p driver.Ops) (err error) {
		state, err = p.State(run)
		return err
	}}, 0))
	return state
}

// read returns the row of a run, which must exist.
func (d *desk) read(run pawl.ID) *runRow {
	d.t.Helper()
	row, err := d.row(d.t.Context(), run)
	require.NoError(d.t, err)
	return row
}

// blocked returns the build that has blocked a run, or "" for none.
func (d *desk) blocked(run pawl.ID) (build string) {
	d.t.Helper()
	require.NoError(d.t, d.file.ViewRows(d.t.Context(), func(tx driver.Reader) error {
		content, err := rowsOf(tx).get(tableBlocked, run[:])
		build = string(content)
		return err
	}))
	return build
}

// spoil makes a row unreadable.
func (d *desk) spoil(t *driver.Table, key []byte) {
	d.t.Helper()
	d.write(func(r rows) error {
		value, err := r.Get(t, key)
		if err != nil || len(value) == 0 {
			return fmt.Errorf("no row %x: %v", key, err)
		}
		value = append([]byte(nil), value...)
		value[len(value)-1] ^= 1
		return r.w.Put(t, key, value)
	})
}

// raw changes the bucket of a table in ways that no Writer can.
func (d *desk) raw(t *driver.Table, fn func(b *bbolt.Bucket) error) {
	d.t.Helper()
	require.NoError(d.t, d.file.Update(d.t.Context(), func(tx *bbolt.Tx) error {
		return fn(tx.Bucket(space.Bytes()).Bucket(t.Bytes()))
	}))
}

// jobIn moves the ready job of a run to a state. "" means gone.
var jobIn = map[pawl.State]func(*desk, pawl.ID){
	pawl.Ready:   func(*desk, pawl.ID) {},
	pawl.Leased:  func(d *desk, run pawl.ID) { d.lease(run) },
	pawl.Delayed: func(d *desk, run pawl.ID) { d.suspend(run, Sleeping, nil) },
	pawl.Dead: func(d *desk, run pawl.ID) {
		require.NoError(d.t, d.file.Settle(d.t.Context(), d.lease(run).Abandon(pawl.ReasonPermanent, fmt.Errorf("disk on fire"))))
	},
	"": func(d *desk, run pawl.ID) { require.NoError(d.t, d.file.Settle(d.t.Context(), d.lease(run).Ack())) },
}
