package workflows

import (
	"database/sql"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite"
)

const sqliteModule = "modernc.org/sqlite"

// journal is how SQLite syncs the commits of a write-ahead log: PRAGMA synchronous.
type journal string

const (
	fullSync   journal = "FULL"
	normalSync journal = "NORMAL"
)

func (j journal) durability() string {
	if j == fullSync {
		return synced
	}
	return normal
}

func (j journal) settings() string { return fmt.Sprintf("journal_mode=WAL, synchronous=%s", string(j)) }

// openSQLite opens a database in a folder, with pragmas that hold on each connection of
// the pool, and with transactions that take the lock for writing at once, as both engines
// open their own.
func openSQLite(dir string, j journal, connections int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+databaseFile(dir)+"?_txlock=immediate"+
		"&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)&_pragma=journal_mode(WAL)&_pragma=synchronous("+string(j)+")")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(min(connections, 4))
	return db, nil
}

func databaseFile(dir string) string { return filepath.Join(dir, "workflows.db") }
