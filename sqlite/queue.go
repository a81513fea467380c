package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	pawldriver "github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Queue is a job queue in a SQLite database. It implements [pawl.Queue]. Its methods are safe for
// concurrent use.
type Queue struct {
	opts    Options
	file    string
	library string // the SQLite library; see sqlLibrary
	lock    *own
	intake  *core.Intake[*call, *fetch]
	done    chan struct{} // closed when the scheduler has ended
	agenda  atomic.Pointer[agenda]
	readers chan *own     // reading connections; nil for a connection that is not open yet
	writing chan struct{} // has a value while the scheduler or Update writes
	app     struct {      // the connection of Update
		once sync.Once
		db   *sql.DB
		err  error
	}
	updates sync.Map // what the running calls of Update have done, by transaction

	reporter pawldriver.Reporter
	waiters  pawldriver.Waiters
	acked    ackedLeases

	scheduler // only for the goroutine of the scheduler
}

var _ pawl.Queue = (*Queue)(nil)

// readers is how many goroutines may read at a time.
const readers = 4

//go:embed schema.sql
var schema string

// format is the format of the tables that this build reads and writes.
const format = 1

// writer sets up the connection of the scheduler. A commit syncs the log, so it is durable when it
// returns.
const writer = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864;`

// reader sets up a connection that reads.
const reader = `PRAGMA query_only = ON; PRAGMA temp_store = MEMORY;`

// Open opens the SQLite database at a path and returns the queue in it. It creates the database and
// the tables of the queue if they do not exist. The names of the tables begin with pawl_, so the app
// can keep its own data in the same file. The database stays in WAL mode. The caller closes the
// queue. Open counts a crash for each lease of a process that ended.
//
// A file has one queue at a time, in one process. Open locks a file whose name is that of the database
// with "-pawl" appended. Close does not remove this file.
//
// Errors: [pawl.ErrInvalid] for a bad option or path, [ErrLocked], [ErrBusy], [ErrNotQueue],
// [ErrOlderFormat], [pawl.ErrNewerFormat], [ErrDisk], [pawl.ErrCorrupt].
func Open(ctx context.Context, path string, opts *Options) (*Queue, error) {
	q, err := openQueue(ctx, path, opts)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", explain(err))
	}
	return q, nil
}

func openQueue(ctx context.Context, path string, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	switch {
	case err != nil:
		return nil, err
	case path == "" || strings.Contains(path, ":memory:"):
		return nil, &pawl.InvalidError{Field: "path", Reason: "it names no file; package memory has a queue without one"}
	case ctx.Err() != nil:
		return nil, pawldriver.NotAccepted(ctx)
	}
	file, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if o.Existing {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotQueue, err)
		}
	}
	locked, err := lock(file)
	if err != nil {
		return nil, err
	}
	// Only the owner can access a new file. SQLite gives the files beside it the same mode.
	if created, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		_ = created.Close()
	}
	q := &Queue{opts: o, file: file, lock: locked, done: make(chan struct{}),
		readers: make(chan *own, readers), writing: make(chan struct{}, 1),
		reporter: pawldriver.Reporter{Logger: o.Logger, OnEvent: o.OnEvent, Collector: o.Collector, MaxCrashes: o.MaxCrashes},
	}
	for range readers {
		q.readers <- nil
	}
	q.intake = newIntake()
	q.scheduler.init()
	if err = q.start(); err != nil {
		q.disconnect()
		return nil, err
	}
	go q.schedule()
	return q, nil
}

// start connects, creates the tables, and takes back the leases of a process that ended.
func (q *Queue) start() (err error) {
	if q.conn, err = open(q.file, q.opts.Timeout, ""); err != nil {
		return err
	}
	if err := migrate(q.conn, q.file, q.opts.Existing); err != nil {
		return err
	}
	if q.library, err = libraryOf(q.conn); err != nil {
		return err
	}
	if _, err := q.conn.exec(writer); err != nil {
		return err
	}
	for more := true; more; {
		t, err := q.attempt([]*call{newCall(context.Background(), &orphans{more: &more})})
		if err != nil {
			return err
		}
		t.conclude()
	}
	return nil
}

// migrate creates the tables if the file has none. If existing is set, it refuses such a file instead.
// It always refuses another format.
func migrate(c *own, file string, existing bool) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := func() error {
		found := int64(-1)
		err := c.query(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'pawl_meta'`, func(v []driver.Value) error {
			if number(v[0]) == 0 {
				return nil
			}
			return c.query(`SELECT format FROM pawl_meta`, func(v []driver.Value) error {
				found = number(v[0])
				return nil
			})
		})
		switch {
		case err != nil:
			return err
		case found > format:
			return fmt.Errorf("%s: %w: it has format %d, this build reads %d", file, pawl.ErrNewerFormat, found, format)
		case found >= 0 && found < format:
			return fmt.Errorf("%s: %w: it has format %d, this build writes %d", file, ErrOlderFormat, found, format)
		case found == format:
			return nil
		case existing:
			return fmt.Errorf("%s: %w", file, ErrNotQueue)
		}
		_, err = c.exec(schema)
		return err
	}()
	if err != nil {
		_, _ = c.exec("ROLLBACK")
		return err
	}
	_, err = c.exec("COMMIT")
	return err
}

// Abilities implements [pawldriver.Able].
func (q *Queue) Abilities() pawl.Ability { return abilities }

const abilities = pawldriver.Settings&^pawl.LimitKeys | pawl.Synced | pawl.Results | pawl.Cursors | pawl.RunNotes | pawl.Prerequisites

// Close stops the queue. Accepted calls get their answers. Waiting fetches and all later calls return
// [pawl.ErrClosed]. Leases that have not ended count as crashes at the next Open. When Close returns,
// no goroutine of the queue runs.
func (q *Queue) Close() error {
	q.intake.Close()
	<-q.done
	return nil
}

// disconnect closes all connections, the lock last. It waits for readers and for Update.
func (q *Queue) disconnect() {
	q.writing <- struct{}{}
	for range readers {
		if c := <-q.readers; c != nil {
			c.close()
		}
	}
	q.app.once.Do(func() { q.app.err = pawl.ErrClosed })
	if q.app.db != nil {
		_ = q.app.db.Close()
	}
	if q.conn != nil {
		q.conn.close()
	}
	q.lock.close()
}

// Path returns the path of the file.
func (q *Queue) Path() string { return q.file }

// MaxPayload returns the largest payload of a job in bytes, as set by the options.
func (q *Queue) MaxPayload() int { return q.opts.MaxPayload }

// Now returns the time by the clock of the queue.
func (q *Queue) Now() time.Time { return q.opts.Now() }

// nanos returns a time in Unix nanoseconds, saturated.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(earliest):
		return earliest.UnixNano()
	case t.After(latest):
		return latest.UnixNano()
	}
	return t.UnixNano()
}

// The times that Unix nanoseconds can hold.
var (
	earliest = time.Unix(0, -1<<63)
	latest   = time.Unix(0, 1<<63-1)
)

func timeOf(nanos int64) time.Time { return time.Unix(0, nanos) }
