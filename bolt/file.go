package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// openFile opens the file at path for writing, and creates it if it does not exist.
func openFile(given string, opts Options) (*bbolt.DB, *dbfile.Guard, error) {
	if given == "" {
		return nil, nil, &pawl.InvalidError{Field: "path", Reason: "is empty"}
	}
	path, err := dbfile.RealPath(given, opts.Insecure)
	if err != nil {
		return nil, nil, err
	}
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = dbfile.MayCreateIn(filepath.Dir(path), opts.Insecure); err == nil {
			err = createFile(path)
		}
	}
	if err != nil {
		return nil, nil, dbfile.Advise(err)
	}
	a := dbfile.Access{Timeout: opts.LockTimeout, Insecure: opts.Insecure, Log: opts.Logger, Check: checkFormat}
	o := &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,

		InitialMmapSize: dbfile.MapSize(path),
	}
	db, file, err := dbfile.Open(path, a, o)
	if errors.Is(err, syscall.ENOMEM) && o.InitialMmapSize > 0 { // the address space of the process may be limited, as with ulimit -v
		o.InitialMmapSize = 0
		db, file, err = dbfile.Open(path, a, o)
	}
	if err != nil {
		return nil, nil, err
	}
	err = dbfile.SyncOpened(db)
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(path))
	}
	var g *dbfile.Guard
	if err == nil {
		g, err = dbfile.NewGuard(given, file, opts.Logger)
	}
	if err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	g.ClosedCleanly = o.PreLoadFreelist
	return db, g, nil
}

// createFile creates an empty queue at path, unless another process is faster. Each process that opens
// the file syncs the folder before it stores anything. A crash before that loses at most an empty queue.
func createFile(path string) error {
	err := atomicfile.Place(path, initFile)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case dbfile.RefusedByDisk(err):
		return fmt.Errorf("%w: create the file: %w", ErrDisk, err)
	}
	return err
}

func initFile(path string) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Update(createBuckets)
}

// createBuckets creates an empty queue.
func createBuckets(tx *bbolt.Tx) error {
	root, err := tx.CreateBucket(bucketRoot)
	if err != nil {
		return err
	}
	for _, name := range buckets {
		if _, err := root.CreateBucket(name); err != nil {
			return err
		}
	}
	return putFormat(root, formatVersion)
}

func putFormat(root *bbolt.Bucket, version uint32) error {
	return root.Bucket(bucketMeta).Put(keyFormat, seal(keyFormat, binary.BigEndian.AppendUint32(nil, version)))
}

// checkFormat checks that the file is a queue in this build's format with all of its buckets.
func checkFormat(tx *bbolt.Tx) error {
	root := tx.Bucket(bucketRoot)
	if root == nil {
		return errForeign
	}
	meta := root.Bucket(bucketMeta)
	if meta == nil {
		return fmt.Errorf("%w: bucket %q is missing", pawl.ErrCorrupt, bucketMeta)
	}
	b, err := unseal(keyFormat, meta.Get(keyFormat), 4)
	if err != nil {
		return fmt.Errorf("format version: %w", err)
	}
	switch version := binary.BigEndian.Uint32(b); {
	case version > formatVersion:
		return fmt.Errorf("%w: format %d, this build reads format %d", pawl.ErrNewerFormat, version, formatVersion)
	case version < formatVersion:
		return fmt.Errorf("%w: format %d, this build reads format %d", ErrOlderFormat, version, formatVersion)
	}
	_, err = openStore(tx)
	return err
}

// syncFreelist writes the list of free pages, which ordinary commits omit, so that the next Open reads the list
// and does not walk the whole file. The same transaction stores what the meter, if there is one, has counted
// since its last store. Both may be lost, so errors do not matter. A failed sync leaves its marker.
func syncFreelist(db *bbolt.DB, g *dbfile.Guard, m *driver.Meter, now time.Time) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }() // the pages of the file may be damaged
	db.NoFreelistSync = false
	tx, err := g.Begin(func() (*bbolt.Tx, error) { return db.Begin(true) })
	if err != nil {
		return
	}
	defer dbfile.Rollback(tx) // does nothing after the commit
	if m != nil && m.Waits() && m.Store(&tables{tx: tx}, now, uint64(tx.ID())) != nil {
		return
	}
	_ = dbfile.CommitMarked(tx, (*bbolt.Tx).Commit)
}

// MarkPath returns the path of the marker that a failed sync leaves beside the file of a queue.
// No other file may be there, or the next Open could not tell what happened.
func MarkPath(path string) string { return dbfile.MarkPath(path) }
