package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/scenario"
	"github.com/gopawl/pawl/sqlite"
)

// TestScenarios proves the promises of workflows. It takes minutes, so it runs only if PAWL_SLOW_TESTS is
// set.
func TestScenarios(t *testing.T) {
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("set PAWL_SLOW_TESTS=1 to run the scenarios of workflows over SQLite")
	}
	scenario.FewerSeeds(t)
	scenario.Run(t, scenario.Store{Open: func(t testing.TB, path string, o scenario.Options) scenario.Queue {
		for { // the life before may be about to end
			q, err := sqlite.Open(t.Context(), path, &sqlite.Options{
				Now: o.Now, MaxCrashes: o.MaxCrashes, Poll: sqlite.NoPoll, Logger: hclog.NewNullLogger(),
			})
			if errors.Is(err, sqlite.ErrLocked) {
				time.Sleep(time.Millisecond)
				continue
			}
			require.NoError(t, err)
			f := &file{Queue: q}
			f.commits = q.CountCommits()
			require.NoError(t, q.Update(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.Exec("CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL)")
				return err
			}))
			return f
		}
	}})
}

// file is a queue with counters of the app.
type file struct {
	*sqlite.Queue
	commits func() int
	dead    atomic.Bool
}

var errDead = errors.New("the process is dead")

// Counts implements [scenario.Queue].
func (f *file) Counts(ctx context.Context) (map[string]pawl.Counts, error) {
	return counts(ctx, f.Queue)
}

// Check implements [scenario.Queue].
func (f *file) Check(ctx context.Context) error {
	found, err := f.Ask(ctx, "PRAGMA integrity_check")
	if err == nil && found[0] != "ok" {
		err = errors.New(found[0].(string))
	}
	return err
}

// Counters implements [scenario.Queue].
func (f *file) Counters(ctx context.Context) (map[string]uint64, error) {
	all := make(map[string]uint64)
	return all, f.Queue.Update(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT name, n FROM counters")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var n uint64
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}
			all[name] = n
		}
		return rows.Err()
	})
}

// Commits implements [scenario.Queue].
func (f *file) Commits(context.Context) (int, error) { return f.commits(), nil }

// Damage implements [scenario.Queue].
func (f *file) Damage(ctx context.Context, id pawl.ID) error {
	return f.Queue.Update(ctx, func(tx *sql.Tx) error {
		var record []byte
		if err := tx.QueryRowContext(ctx, "SELECT record FROM pawl_job WHERE id = ?", id[:]).Scan(&record); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = pawl.ErrNotFound
			}
			return err
		}
		record[len(record)-1] ^= 1
		_, err := tx.ExecContext(ctx, "UPDATE pawl_job SET record = ? WHERE id = ?", record, id[:])
		return err
	})
}

// Crash implements [scenario.Queue].
func (f *file) Crash() {
	f.dead.Store(true)
	f.Queue.Crash()
}

// Update implements [workflow.Transactor].
func (f *file) Update(ctx context.Context, fn func(scenario.Tx) error) error {
	app := new(fileTx)
	err := f.Queue.Update(ctx, func(tx *sql.Tx) error {
		app.Tx = tx
		err := fn(app)
		if err == nil && f.dead.Load() {
			err = errDead
		}
		return err
	})
	if err == nil {
		for _, fn := range app.onCommit {
			fn()
		}
	}
	return err
}

// MutateTx implements [workflow.Transactor].
func (f *file) MutateTx(tx scenario.Tx, m driver.Mutation) error {
	return f.Queue.MutateTx(tx.(*fileTx).Tx, m)
}

// In implements [workflow.Transactor].
func (f *file) In(tx scenario.Tx) pawl.Enqueuer { return f.Queue.In(tx.(*fileTx).Tx) }

// fileTx is a transaction of the app.
type fileTx struct {
	*sql.Tx
	onCommit []func()
}

// Count implements [scenario.Tx].
func (tx *fileTx) Count(name string) (n uint64, err error) {
	err = tx.QueryRow("INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = n + 1 RETURNING n", name).Scan(&n)
	return n, err
}

// OnCommit implements [scenario.Tx].
func (tx *fileTx) OnCommit(fn func()) { tx.onCommit = append(tx.onCommit, fn) }
