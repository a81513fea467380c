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
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// openFile opens the file at path for writing, and creates it if it does not exist.
func openFile(given string, opts Options) (*bbolt.DB, *guard, error) {
	if given == "" {
		return nil, nil, &pawl.InvalidError{Field: "path", Reason: "is empty"}
	}
	path, err := realPath(given, opts.Insecure)
	if err != nil {
		return nil, nil, err
	}
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createIn(filepath.Dir(path), opts.Insecure); err == nil {
			err = createFile(path)
		}
	}
	if err != nil {
		return nil, nil, advise(err)
	}
	a := access{timeout: opts.LockTimeout, insecure: opts.Insecure, log: opts.Logger}
	o := &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,

		InitialMmapSize: mapSize(path),
	}
	db, file, err := openDB(path, a, o)
	if errors.Is(err, syscall.ENOMEM) && o.InitialMmapSize > 0 { // the address space of the process may be limited, as with ulimit -v
		o.InitialMmapSize = 0
		db, file, err = openDB(path, a, o)
	}
	if err != nil {
		return nil, nil, err
	}
	err = syncOpened(db)
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(path))
	}
	var g *guard
	if err == nil {
		g, err = newGuard(given, file, opts.Logger)
	}
	if err == nil {
		err = g.start()
	}
	if err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return db, g, nil
}

// realPath returns the path where the failed-sync marker of a file is found, independent of the
// working directory and of the name under which the file is opened.
func realPath(path string, follow bool) (string, error) {
	real, err := filepath.Abs(path)
	if err == nil && follow {
		if there, err := filepath.EvalSymlinks(real); err == nil {
			return there, nil
		}
	}
	if err == nil && os.IsPathSeparator(path[len(path)-1]) {
		real += string(filepath.Separator) // path does not name a file
	}
	return real, err
}

// createIn refuses a folder in which no file should be created.
func createIn(folder string, insecure bool) error {
	if insecure {
		return nil
	}
	err := checkFolder(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // creating the file returns the error
	}
	return err
}

// syncOpened makes the visible content of the file durable before anything builds on it. If a
// process is killed between the write of a commit and its sync, the system shows pages that the
// disk may not have. The next commit would overwrite pages that the tree on the disk needs, and
// a power failure would then leave neither tree.
func syncOpened(db *bbolt.DB) error {
	err := db.Sync()
	if err == nil {
		return nil
	}
	// It is unknown whether any transaction is in doubt, so none is rolled back. The next Open
	// copies what the system shows.
	return fmt.Errorf("sync the file: %w", errors.Join(err, mark(db.Path(), 0)))
}

// createFile creates an empty queue at path, unless another process is faster. Whoever opens
// the file syncs the folder before storing anything. A crash before that loses at most an empty
// queue.
func createFile(path string) error {
	err := atomicfile.Place(path, initFile)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case refusedByDisk(err):
		return fmt.Errorf("%w: create the file: %w", ErrDisk, err)
	}
	return err
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
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

// openDB claims the file, passes it to bbolt, and checks that it is a queue. It fills in the
// options. Bbolt closes the file.
func openDB(path string, a access, o *bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	c, err := claim(path, a)
	if err != nil {
		return nil, nil, err
	}
	defer c.stopReading()
	given := false
	o.Timeout, o.ReadOnly = a.timeout, a.readOnly
	o.PreLoadFreelist = a.readOnly && c.freelist // without a list it would walk the whole file
	o.OpenFile = func(name string, flag int, mode fs.FileMode) (*os.File, error) {
		if !given {
			given = true
			return c.file, nil
		}
		return os.OpenFile(name, flag&^os.O_CREATE, mode) // bbolt opens the file again for some copies
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			unlock(c.file)
			_ = c.file.Close()
			db, file, err = nil, nil, fmt.Errorf("%w: the pages of the file are damaged: %v", pawl.ErrCorrupt, p)
		}
	}()
	db, err = bbolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%w%s; stop it, or open another file", ErrLocked, lockHolder(path))
	case err != nil:
		return nil, nil, err
	}
	if err := db.View(checkFormat); err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return db, c.file, nil
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

// syncFreelist writes the list of free pages, which ordinary commits omit, so that the next
// Open reads the list and does not walk the whole file. It is only an optimization, so errors
// do not matter. A failed sync leaves its marker.
func syncFreelist(db *bbolt.DB, g *guard) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }() // the pages of the file may be damaged
	db.NoFreelistSync = false
	tx, err := g.begin(func() (*bbolt.Tx, error) { return db.Begin(true) })
	if err != nil {
		return
	}
	if err := commitMarked(tx, (*bbolt.Tx).Commit); err != nil {
		rollback(tx)
	}
}

func closeDB(db *bbolt.DB) error {
	if err := db.Close(); err != nil {
		return fmt.Errorf("close queue: %w", err)
	}
	return nil
}
