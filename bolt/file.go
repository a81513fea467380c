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

// openFile opens the file at path to write to, and creates it when there is none.
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
	if errors.Is(err, syscall.ENOMEM) && o.InitialMmapSize > 0 { // the process may not have that much, as with ulimit -v
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

// realPath is the path by which the mark of a file is found again, wherever the process
// goes, and by whichever name the file is opened next.
func realPath(path string, follow bool) (string, error) {
	real, err := filepath.Abs(path)
	if err == nil && follow {
		if there, err := filepath.EvalSymlinks(real); err == nil {
			return there, nil
		}
	}
	if err == nil && os.IsPathSeparator(path[len(path)-1]) {
		real += string(filepath.Separator) // it names no file
	}
	return real, err
}

// createIn refuses a folder in which no file should be made.
func createIn(folder string, insecure bool) error {
	if insecure {
		return nil
	}
	err := checkFolder(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // making the file says so
	}
	return err
}

// syncOpened makes durable what the file shows, before anything is built on it. A process
// that was killed between the write of a commit and its sync leaves pages that the system
// shows and the disk may not have: the next commit would overwrite pages that the tree on
// the disk needs, and a power cut would then leave neither tree.
func syncOpened(db *bbolt.DB) error {
	err := db.Sync()
	if err == nil {
		return nil
	}
	// Nobody knows whether a transaction is in doubt, and which, so none is taken back: the
	// next Open makes a copy of all that the system shows.
	return fmt.Errorf("sync the file: %w", errors.Join(err, mark(db.Path(), 0)))
}

// createFile makes an empty queue at path, unless another process is faster. Whoever
// opens it syncs the folder before it stores anything; a crash before may take the name
// with it, and an empty queue.
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

// createBuckets makes an empty queue.
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

// openDB claims the file, hands it to bbolt, and checks that it is a queue. It fills in
// the options. Bbolt closes the file.
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
		return os.OpenFile(name, flag&^os.O_CREATE, mode) // again, for some copies
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

// checkFormat checks that the file is a queue of this build's format, and that no bucket is
// missing.
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

// syncFreelist writes the list of free pages, which running commits leave out, so
// that the next Open reads it instead of walking the whole file. It is an
// optimization: an error is of no matter, and a failed sync leaves its mark.
func syncFreelist(db *bbolt.DB, g *guard) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }() // in a file whose pages are damaged
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
