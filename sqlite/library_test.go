package sqlite_test

import (
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	moderncsqlite "modernc.org/sqlite"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/sqlite"
)

// wrapped is a driver that wraps the queue's driver. It replaces a text in each statement.
type wrapped struct{ old, new string }

func (d wrapped) Open(name string) (driver.Conn, error) {
	c, err := new(moderncsqlite.Driver).Open(name)
	return wrappedConn{c, d}, err
}

type wrappedConn struct {
	driver.Conn
	d wrapped
}

func (c wrappedConn) Prepare(statement string) (driver.Stmt, error) {
	return c.Conn.Prepare(strings.ReplaceAll(statement, c.d.old, c.d.new))
}

func init() {
	sql.Register("pawl-wrapped", wrapped{})
	sql.Register("pawl-other-version", wrapped{"sqlite_source_id()", "'another'"})
	sql.Register("pawl-other-build", wrapped{"group_concat(", "'another' || group_concat("})
}

// Rule: a transaction of another SQLite library is refused, and nothing is changed. Two libraries in one process
// break each other's locks of a file. A driver that wraps the queue's driver is not another library.
func TestTransactionOfAnotherLibrary(t *testing.T) {
	q, path := newQueue(t, nil)
	enqueueOne(t, q, &pawl.Envelope{Kind: "k"})
	l := fetchOne(t, q)
	for name, refused := range map[string]bool{"sqlite": false, "pawl-wrapped": false, "pawl-other-version": true, "pawl-other-build": true} {
		t.Run(name, func(t *testing.T) {
			db, err := sql.Open(name, "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			tx := begin(t, db)
			_, enqueued := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "new"})
			acked := q.AckTx(t.Context(), tx, l)
			var jobs int
			require.NoError(t, tx.QueryRow("SELECT count(*) FROM pawl_job").Scan(&jobs))
			require.NoError(t, tx.Rollback())
			for _, err := range []error{enqueued, acked} {
				if !refused {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, pawl.ErrInvalid)
				require.ErrorContains(t, err, `open the app's database with driver "sqlite" of modernc.org/sqlite`)
				require.Equal(t, 1, jobs)
			}
		})
	}
}

// Rule: the check of the library takes no lock.
func TestLibraryIsAskedWithoutLock(t *testing.T) {
	_, path := newQueue(t, nil)
	rows, err := appDB(t, path).Query("EXPLAIN " + sqlite.SQLLibrary)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	steps := 0
	for ; rows.Next(); steps++ {
		var opcode string
		var other any
		require.NoError(t, rows.Scan(&other, &opcode, &other, &other, &other, &other, &other, &other))
		require.NotEqual(t, "Transaction", opcode)
	}
	require.NoError(t, rows.Err())
	require.NotZero(t, steps)
}
