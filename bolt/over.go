package bolt

import (
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// ErrAlreadyOpen says that a queue is open over the database already. Share that one.
var ErrAlreadyOpen = errors.New("a queue is open over this database already; share it")

// Over opens the queue inside an app's own database, in the top-level bucket "pawl",
// and makes it when there is none. The app goes on using db as it likes, but leaves that
// bucket alone. [Queue.Close] leaves db open; close the queue first.
//
// The jobs that were leased when the database was last closed are ready again: bbolt
// lets one process open a file, and one queue is allowed over each database
// ([ErrAlreadyOpen]).
//
// The events of a commit of the app's own are told by whoever committed. Where the queue
// goes on with a job at once, the events of that may come first.
//
// A commit of the app's own that fails is the app's to handle, as is what it sets on
// db: NoFreelistSync makes a queue with a long history faster, and NoSync is refused,
// since it gives up what the queue promises.
//
// Errors: those of [Open] as far as they apply, and [pawl.ErrPoisoned] for a file whose last
// sync failed in a transaction of the queue's.
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
	if _, ok, err := marked(db.Path()); err != nil {
		return nil, err
	} else if ok {
		return nil, fmt.Errorf("%w: a sync failed when it was last open; close the database, and open and close the file once with Open, which mends it", pawl.ErrPoisoned)
	}
	if err := syncOpened(db); err != nil {
		return nil, err
	}
	err := createOver(db)
	if refusedByDisk(err) {
		return nil, fmt.Errorf("%w: create the queue: %w", ErrDisk, err)
	}
	if err != nil {
		return nil, err
	}
	if err := db.View(checkFormat); err != nil {
		return nil, err
	}
	g, err := guardOver(db, o.Logger)
	if err != nil {
		return nil, err
	}
	if g == nil && canLock {
		o.Logger.Warn("cannot watch the file of the database: its path leads elsewhere", "path", db.Path())
	}
	q, err := newQueue(db, g, o, true)
	if err != nil {
		g.close()
	}
	return q, err
}

// createOver makes an empty queue in a database that has none.
func createOver(db *bbolt.DB) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer rollback(tx)
	if tx.Bucket(bucketRoot) != nil {
		return nil
	}
	if err := createBuckets(tx); err != nil {
		return err
	}
	return commitMarked(tx, (*bbolt.Tx).Commit)
}

// open are the databases that have a queue.
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
