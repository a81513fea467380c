package sqlite

import (
	"database/sql/driver"

	"github.com/gopawl/pawl"
)

// sqlLibrary names the SQLite library of a connection by its version and how it was built. It reads no table, so
// a transaction that was not begun with BEGIN IMMEDIATE still takes its first lock with its first write.
const sqlLibrary = `WITH RECURSIVE option (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM option WHERE sqlite_compileoption_get(i) IS NOT NULL)
SELECT sqlite_source_id() || ' ' || group_concat(sqlite_compileoption_get(i)) FROM option`

// libraryOf returns what sqlLibrary says.
func libraryOf(c conn) (name string, err error) {
	err = c.query(sqlLibrary, func(v []driver.Value) error {
		name = string(bytesOf(v[0]))
		return nil
	})
	return name, err
}

// checkLibrary refuses a transaction of a SQLite library other than the queue's. Two libraries in one process do
// not know each other's locks. POSIX drops the locks of both when one of them closes the file.
func (q *Queue) checkLibrary(c conn) error {
	switch name, err := libraryOf(c); {
	case err != nil:
		return explain(err)
	case name != q.library:
		return &pawl.InvalidError{Field: "transaction", Reason: "it belongs to another SQLite library than the queue, " +
			"and two of them in one process damage the file; " +
			`open the app's database with driver "sqlite" of modernc.org/sqlite`}
	}
	return nil
}
