package bolt

import (
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
)

// ErrAlreadyOpen says that the database already has an open queue. Share that queue.
var ErrAlreadyOpen = errors.New("a queue is open over this database already; share it")

// Over opens the queue inside an app's own database, in the top-level bucket "pawl". It creates the
// bucket if it does not exist. The app may use db as before, but must leave that bucket alone.
// [Queue.Close] leaves db open. Close the queue first.
//
// Jobs that were leased when the database was last closed are ready again: bbolt lets only one
// process open a file, and each database may have only one open queue ([ErrAlreadyOpen]).
//
// The goroutine that commits an app's transaction reports its events. If the queue moves one of the
// jobs immediately, it may report the events of that move first.
//
// The app handles failures of its own commits, and the settings of db are the app's choice:
// NoFreelistSync makes a queue with a long history faster. Over refuses NoSync, which would
// break the promises of the queue.
//
// Over returns the errors of [Open] that apply, and [pawl.ErrPoisoned] for a file whose last
// sync failed in a transaction of the queue.
func Over(db *bbolt.DB, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	switch {
	case db.NoSync:
		return nil, fmt.Errorf("open queue %s: %w", db.Path(), &pawl.InvalidError{
			Field: "database", Reason: "it has NoSync set; a queue that loses jobs is not offered"})
	case db.IsReadOnly():
		return nil, fmt.Errorf("open queue %s: %w", db.Path(), &pawl.InvalidError{
			Field: "database", Reason: "it is open for reading only"})
	}
	if err := register(db); err != nil {
		return nil, fmt.Errorf("open queue %s: %w", db.Path(), err)
	}
	q, err := over(db, o)
	if err != nil {
		unregister(db)
		return nil, fmt.Errorf("open queue %s: %w", db.Path(), err)
	}
	return q, nil
}

func over(db *bbolt.DB, o Options) (*Queue, error) {
	if _, ok, err := dbfile.Marked(db.Path()); err != nil {
		return nil, err
	} else if ok {
		return nil, fmt.Errorf("%w: a sync failed when it was last open; close the database, and open and close the file once with Open, which repairs it", pawl.ErrPoisoned)
	}
	if err := dbfile.SyncOpened(db); err != nil {
		return nil, err
	}
	err := createOver(db)
	if dbfile.RefusedByDisk(err) {
		return nil, fmt.Errorf("%w: create the queue: %w", ErrDisk, err)
	}
	if err != nil {
		return nil, err
	}
	if err := db.View(checkFormat); err != nil {
		return nil, err
	}
	g, err := dbfile.GuardOver(db, o.Logger)
	if err != nil {
		return nil, err
	}
	if g == nil && dbfile.CanLock {
		o.Logger.Warn("cannot watch the file of the database: its path leads elsewhere", "path", db.Path())
	}
	q, err := newQueue(db, g, o, true)
	if err != nil {
		g.Close()
	}
	return q, err
}

// createOver creates an empty queue in a database that has none.
func createOver(db *bbolt.DB) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer dbfile.Rollback(tx)
	if tx.Bucket(bucketRoot) != nil {
		return nil
	}
	if err := createBuckets(tx); err != nil {
		return err
	}
	return dbfile.CommitMarked(tx, (*bbolt.Tx).Commit)
}

// open is the set of databases that have an open queue.
var open struct {
	sync.Mutex
	dbs map[*bbolt.DB]bool
}

func register(db *bbolt.DB) error {
	open.Lock()
	defer open.Unlock()
	if open.dbs[db] {
		return ErrAlreadyOpen
	}
	if open.dbs == nil {
		open.dbs = make(map[*bbolt.DB]bool)
	}
	open.dbs[db] = true
	return nil
}

func unregister(db *bbolt.DB) {
	open.Lock()
	defer open.Unlock()
	delete(open.dbs, db)
}
