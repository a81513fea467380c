package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/sqlite"
)

// newQueue opens a queue in a new file.
func newQueue(t *testing.T, opts *sqlite.Options) (*sqlite.Queue, string) {
	t.Helper()
	path := filepath.Join(memdir.New(t), "app.sqlite")
	return openQueue(t, path, opts), path
}

func openQueue(t *testing.T, path string, opts *sqlite.Options) *sqlite.Queue {
	t.Helper()
	if opts == nil {
		opts = new(sqlite.Options)
	}
	opts.Logger = hclog.NewNullLogger()
	q, err := sqlite.Open(t.Context(), path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// appDB opens the app's own connections to a file.
func appDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	require.NoError(t, err)
	return tx
}

func fetchOne(t *testing.T, q *sqlite.Queue) *pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	return leases[0]
}

func enqueueOne(t *testing.T, q pawl.Enqueuer, e *pawl.Envelope) pawl.ID {
	t.Helper()
	done, err := q.Enqueue(t.Context(), e)
	require.NoError(t, err)
	return done[0].ID
}

// Rule: a place that begins with sqlite: opens the file behind it.
func TestEngine(t *testing.T) {
	path := filepath.Join(memdir.New(t), "app.sqlite")
	q, err := engine.Open(t.Context(), "sqlite:"+path)
	require.NoError(t, err)
	require.NoError(t, pawl.Require(q, pawl.Synced))
	require.ErrorIs(t, pawl.Require(q, pawl.Shared), pawl.ErrUnsupported)
	require.NoError(t, q.Close())
	require.FileExists(t, path)

	q, err = engine.Open(t.Context(), "sqlite:"+filepath.Join(path, "none"))
	require.Error(t, err)
	require.Nil(t, q)
}

// Rule: a file has one queue at a time, whichever path names it. The next one opens once the queue is
// closed.
func TestOneQueueOfAFile(t *testing.T) {
	q, path := newQueue(t, nil)
	link := filepath.Join(t.TempDir(), "link.sqlite")
	require.NoError(t, os.Symlink(path, link))
	for _, other := range []string{path, link} {
		_, err := sqlite.Open(t.Context(), other, nil)
		require.ErrorIs(t, err, sqlite.ErrLocked)
	}
	require.NoError(t, q.Close())
	require.NoError(t, openQueue(t, link, nil).Close())
}

// Rule: a file that is no queue is refused if the queue must exist, and so are a file of another program,
// a newer format, and a database in memory. Nothing is changed.
func TestOpenRefuses(t *testing.T) {
	folder := memdir.New(t)
	missing := filepath.Join(folder, "missing.sqlite")
	_, err := sqlite.Open(t.Context(), missing, &sqlite.Options{Existing: true})
	require.ErrorIs(t, err, sqlite.ErrNotQueue)
	require.NoFileExists(t, missing)

	other := filepath.Join(folder, "other.sqlite")
	text := strings.Repeat("no database ", 1000)
	require.NoError(t, os.WriteFile(other, []byte(text), 0o600))
	_, err = sqlite.Open(t.Context(), other, nil)
	require.ErrorIs(t, err, sqlite.ErrNotQueue)
	found, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, text, string(found))

	newer := filepath.Join(folder, "newer.sqlite")
	require.NoError(t, openQueue(t, newer, nil).Close())
	_, err = appDB(t, newer).Exec("UPDATE pawl_meta SET format = 2")
	require.NoError(t, err)
	_, err = sqlite.Open(t.Context(), newer, nil)
	require.ErrorIs(t, err, pawl.ErrNewerFormat)

	for _, path := range []string{"", ":memory:"} {
		_, err = sqlite.Open(t.Context(), path, nil)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

// Rule: each commit syncs the log before it returns.
func TestCommitsAreSynced(t *testing.T) {
	q, _ := newQueue(t, nil)
	for pragma, want := range map[string]any{"synchronous": int64(2), "journal_mode": "wal"} {
		found, err := q.Ask(t.Context(), "PRAGMA "+pragma)
		require.NoError(t, err)
		require.EqualValues(t, []any{want}, []any{found[0]}, pragma)
	}
}

// Rule: each statement that runs once per job reads the file by an index, in the order of the index,
// whatever the file holds.
func TestPlans(t *testing.T) {
	q, _ := newQueue(t, nil)
	for _, statement := range sqlite.HotStatements {
		plan, err := q.Ask(t.Context(), "EXPLAIN QUERY PLAN "+strings.ReplaceAll(statement, "?", "0"))
		require.NoError(t, err)
		require.NotEmpty(t, plan)
		for _, step := range plan {
			require.NotContains(t, step, "TEMP B-TREE", statement)
			if text := step.(string); strings.HasPrefix(text, "SCAN") && text != "SCAN CONSTANT ROW" {
				require.Contains(t, text, "INDEX", statement)
			}
		}
	}
}

// Rule: an app may write to the file at any time. Calls of the queue wait for its transaction, and return
// ErrBusy when Options.Timeout is over, without an effect.
func TestAppHoldsTheWriteLock(t *testing.T) {
	q, path := newQueue(t, &sqlite.Options{Timeout: 100 * time.Millisecond})
	db := appDB(t, path)
	tx := begin(t, db)
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, sqlite.ErrBusy)
	require.NoError(t, tx.Rollback())
	id := enqueueOne(t, q, &pawl.Envelope{Kind: "k"})
	require.Equal(t, id, fetchOne(t, q).ID)
}
