package system

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"
	sqlite3lib "modernc.org/sqlite/lib"
)

// Embedded returns the queues that run inside the program on SQLite: each once with
// every commit synced, for a comparison at the same safety, and once as its
// documentation opens the database.
func Embedded() []System {
	return []System{
		newGoqite("goqite", walFull),
		newGoqite("goqite-default", walNormal),
		newBacklite("backlite", walFull),
		newBacklite("backlite-default", walNormal),
		newRiverSQLite("river-sqlite", walFull),
		newRiverSQLite("river-sqlite-default", deleteFull),
	}
}

// journal says how a database writes and syncs its commits.
type journal struct {
	mode        string // PRAGMA journal_mode
	synchronous string // PRAGMA synchronous
	durability  string
}

var (
	// The log is synced at each commit, so a commit that returned is on the disk.
	walFull = journal{"WAL", "FULL", Synced}

	// What go-sqlite3 sets when the DSN asks for WAL and says nothing of synchronous.
	walNormal = journal{"WAL", "NORMAL",
		"synced at checkpoints only; a power cut takes the commits since the last"}

	// SQLite's default. A commit is the removal of the journal,
	// and synchronous=FULL does not sync the folder after it, as EXTRA would.
	deleteFull = journal{"DELETE", "FULL",
		"synced, but a power cut may undo the last commit (rollback journal)"}
)

func (j journal) String() string {
	return fmt.Sprintf("journal_mode=%s, synchronous=%s", j.mode, j.synchronous)
}

// openMattn opens a database with go-sqlite3, SQLite's own C code, which the
// documentation of goqite and backlite uses.
//
// One connection, as goqite's README has it: SQLite has one writer at a time, and in
// database/sql the callers wait for the connection in a fair line, where SQLite's busy
// handler has them sleep and try again. Backlite's README says nothing of the pool; with
// 64 producers it enqueues more this way, and no slower with one.
func openMattn(dir string, j journal) (*sql.DB, error) {
	return openSQLite("sqlite3", filepath.Join(dir, "jobs.db")+
		"?_journal="+j.mode+"&_synchronous="+j.synchronous+"&_timeout=5000&_fk=true")
}

// openModernc opens a database with SQLite translated to Go, which River's documentation
// and tests use. They also have the one connection, without which River meets SQLITE_BUSY.
func openModernc(dir string, j journal) (*sql.DB, error) {
	return openSQLite("sqlite", filepath.Join(dir, "jobs.db")+
		"?_pragma=journal_mode("+j.mode+")&_pragma=synchronous("+j.synchronous+")")
}

func openSQLite(driver, dsn string) (*sql.DB, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func mattnVersion() string {
	version, _, _ := sqlite3.Version()
	return "go-sqlite3 " + moduleVersion("github.com/mattn/go-sqlite3") + ", SQLite " + version
}

func moderncVersion() string {
	return "modernc.org/sqlite " + moduleVersion("modernc.org/sqlite") + ", SQLite " + sqlite3lib.SQLITE_VERSION
}

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version
			}
		}
	}
	return "unknown"
}

// errorsOnly is the log of the queues: what goes wrong has to be seen, and a line for
// each job would be part of what is measured.
func errorsOnly() *slog.Logger {
	return logAbove(slog.LevelError)
}

func logAbove(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// stopContext limits how long a queue may take to stop its workers. That usually takes
// milliseconds.
func stopContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 4*time.Second)
}
