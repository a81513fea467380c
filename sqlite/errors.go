package sqlite

import (
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Errors of the file. Match them with errors.Is. The returned error also contains the message of SQLite.
var (
	// ErrLocked says that another queue has the file open, in this process or in another one. A
	// file has one queue at a time.
	ErrLocked = driver.NewSentinel("sqlite_locked", "another queue has the file open")

	// ErrBusy says that another connection held the write lock of the file for longer than
	// Options.Timeout. Nothing was changed. Keep the app's write transactions short.
	ErrBusy = driver.NewSentinel("sqlite_busy", "another connection is writing to the file")

	// ErrNotQueue says that the file is not a SQLite database, or that it has no queue although
	// Options.Existing is set.
	ErrNotQueue = driver.NewSentinel("sqlite_not_queue", "there is no queue in the file")

	// ErrOlderFormat says that an older build wrote the tables. Use that build.
	ErrOlderFormat = driver.NewSentinel("sqlite_older_format", "the tables have an older format than this build writes")

	// ErrDisk says that the disk refused a write, for example because it is full. Nothing was stored.
	// Calls succeed again once the disk accepts writes.
	ErrDisk = driver.NewSentinel("sqlite_disk", "the disk refused a write")
)

// explain gives an error of SQLite its sentinel.
func explain(err error) error {
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrNotQueue, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w", pawl.ErrCorrupt, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return err
}

// code returns the primary code of an error of SQLite, 0 for another error.
func code(err error) int {
	var of *sqlite.Error
	if errors.As(err, &of) {
		return of.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isEnd reports whether there are no more rows.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
