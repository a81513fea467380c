package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// guard notices that another program interferes with the file of an open database: it
// truncates or overwrites the file, or the path no longer leads to it. The lock of the file
// keeps other queues out, and cp, mv and rm do not ask for it.
//
// content is asked before a transaction begins, since bbolt faults in a file that is too short
// and would write into the pages of another one. place is asked after a commit, before anybody
// is answered. A nil guard notices nothing.
type guard struct {
	path   string   // absolute; a symbolic link is followed at each look
	file   *os.File // what is open
	info   fs.FileInfo
	shared bool // the app commits too
	view   view
	log    pawl.Logger
	unseen sync.Once // reports that the view changed

	mu    sync.Mutex                  // guards last
	last  pages.Meta                  // the newest meta page known; after a commit only its transaction is
	wrong atomic.Pointer[overwritten] // what was found first, for good
	stuck atomic.Bool                 // bbolt panicked with its locks held, and must not be called any more
	tell  atomic.Pointer[func()]      // called when something was found
}

// overwritten is an ErrOverwritten.
type overwritten struct{ error }

// newGuard guards a file that was opened by the name path.
func newGuard(path string, f *os.File, log pawl.Logger) (*guard, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &guard{path: path, file: f, info: info, view: viewOf(path), log: log}, nil
}

// start takes what the file has now for what it is to have.
func (g *guard) start() error {
	meta, err := pages.Newest(g.file)
	if err != nil {
		return pageError(err)
	}
	g.last = meta
	return nil
}

// guardOver guards the file of a database of the app's. An absolute path that does not lead to that
// file is [ErrReplaced]: bbolt waits for the lock of a file that another process may replace meanwhile.
// Where a relative path does not, as when the app has changed its working directory, guardOver
// returns nil.
func guardOver(db *bbolt.DB, log pawl.Logger) (*guard, error) {
	if !canLock {
		return nil, nil // closing a second descriptor could give up the lock of the first
	}
	absolute := filepath.IsAbs(db.Path())
	f, err := os.Open(db.Path())
	if absolute && errors.Is(err, fs.ErrNotExist) {
		return nil, errReplacedBefore(db.Path())
	}
	if err != nil {
		return nil, nil
	}
	g, err := newGuard(db.Path(), f, log)
	if err == nil {
		g.shared = true
		err = g.identify(db)
	}
	if err == nil && g.last.TxID == 0 && absolute {
		err = errReplacedBefore(db.Path())
	}
	if err != nil || g.last.TxID == 0 {
		_ = f.Close()
		return nil, err
	}
	return g, nil
}

// errReplacedBefore is the error for a database whose path led to another file before the queue was
// opened.
func errReplacedBefore(path string) error {
	return fmt.Errorf("%w: %s is not the file of this database; close the database and open it again", ErrReplaced, path)
}

// identify starts a guard whose file is that of db.
func (g *guard) identify(db *bbolt.DB) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer rollback(tx)
	meta, err := pages.Newest(g.file)
	if err == nil && meta.TxID+1 == uint64(tx.ID()) && meta.Root == uint64(tx.Cursor().Bucket().Root()) {
		g.last = meta
	}
	return nil
}

// close ends a guard that has opened its file itself.
func (g *guard) close() {
	if g != nil && g.shared {
		_ = g.file.Close()
	}
}

// content looks whether the file holds what this process has written, by its size and its
// meta pages.
func (g *guard) content() error {
	if g == nil {
		return nil
	}
	if w := g.wrong.Load(); w != nil {
		return w.error
	}
	known := g.known()
	if err := g.holds(known.Bytes()); err != nil {
		return err
	}
	meta, err := pages.Newest(g.file)
	if errors.Is(err, pages.ErrForeign) || errors.Is(err, pages.ErrDamaged) {
		return g.overwritten("its first pages are not those of the queue")
	}
	if err != nil {
		return nil // the file is closed, which Begin says, or the disk cannot read it
	}
	if err := g.holds(meta.Bytes()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch last := g.last; {
	case meta.TxID < known.TxID, !g.shared && meta.TxID > last.TxID+1, // one may be under way
		!g.shared && meta.TxID == last.TxID && last.Root != 0 && meta.Root != last.Root:
		return g.overwritten("it shows transaction %d, and this process has written %d", meta.TxID, last.TxID)
	case meta.TxID == last.TxID, g.shared && meta.TxID > last.TxID:
		g.last = meta
	}
	return nil
}

func (g *guard) known() pages.Meta {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// holds requires that the file has so many bytes.
func (g *guard) holds(size int64) error {
	if size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := g.file.ReadAt(last[:], size-1); !errors.Is(err, io.EOF) {
		return nil
	}
	info, err := g.file.Stat()
	if err != nil || info.Size() >= size {
		return nil
	}
	return g.overwritten("it was truncated to %d bytes of %d", info.Size(), size)
}

func (g *guard) overwritten(format string, args ...any) error {
	err := fmt.Errorf("%w: %w: %s; stop the app, then restore a backup or save what is left with Salvage (jobctl db salvage)",
		ErrOverwritten, pawl.ErrCorrupt, fmt.Sprintf(format, args...))
	if g.wrong.CompareAndSwap(nil, &overwritten{err}) {
		if tell := g.tell.Load(); tell != nil {
			(*tell)()
		}
	}
	return g.wrong.Load().error
}

// committed notes that this process has written a transaction.
func (g *guard) committed(transaction int) {
	if g != nil && !g.shared {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.last = pages.Meta{TxID: uint64(transaction)}
	}
}

// place looks whether the path leads to the open file, by device and inode. It takes about a
// microsecond. Windows does not let others rename or remove an open file.
func (g *guard) place() error {
	if g == nil {
		return nil
	}
	const save = "this process still has the old one, with everything that was acknowledged: " +
		"save it with Queue.Backup or jobctl db backup before the process ends, and put the copy in its place"
	there, err := os.Stat(g.path)
	if err == nil && os.SameFile(there, g.info) {
		return nil
	}
	if now, statErr := g.file.Stat(); statErr == nil && names(now) > 0 && g.view.changed() {
		g.unseen.Do(func() {
			g.log.Warn("cannot watch the file any more: this process was chrooted, or a mount hides the path", "path", g.path)
		})
		return nil
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s was removed or renamed; %s", ErrReplaced, g.path, save)
	case err == nil:
		return fmt.Errorf("%w: another file was put at %s; %s", ErrReplaced, g.path, save)
	}
	return nil // or nobody can tell
}

// view is how a process saw the folders that lead to a file when it opened the file.
type view []seen

// seen is one folder of a view.
type seen struct {
	path string
	info fs.FileInfo
}

func viewOf(path string) (v view) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for last := ""; path != last; {
		last, path = path, filepath.Dir(path)
		if info, err := os.Stat(path); err == nil {
			v = append(v, seen{path, info})
		}
	}
	return v
}

// changed reports whether the process was given another root folder, or a folder is on
// another device now: chroot and mounts change what a path leads to, and not the file.
func (v view) changed() bool {
	for _, was := range v {
		now, err := os.Lstat(was.path) // a link that took the place of a folder is no mount
		if err != nil {
			continue
		}
		if now.IsDir() && device(now) != device(was.info) || filepath.Dir(was.path) == was.path && !os.SameFile(now, was.info) {
			return true
		}
	}
	return false
}

// begin begins a transaction in a file that holds what it is to hold.
func (g *guard) begin(begin func() (*bbolt.Tx, error)) (*bbolt.Tx, error) {
	if err := g.content(); err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned && g != nil {
			g.stuck.Store(true)
		}
	}()
	tx, err := begin()
	returned = true
	return tx, err
}

// damaged is the error of a panic amid a transaction: what interferes with the file, or else
// that its pages are damaged.
func (g *guard) damaged(panicked any) error {
	if err := g.content(); err != nil {
		return err
	}
	if g != nil && g.stuck.Load() {
		return g.overwritten("%v", panicked)
	}
	return fmt.Errorf("%w: the pages of the file are damaged: %v", pawl.ErrCorrupt, panicked)
}

// fault is the error of a panic in the app's code, where that is a fault of memory in the map
// of the file or comes of a file that was overwritten. For any other panic it is nil.
func (g *guard) fault(panicked any) error {
	_, memory := panicked.(interface{ Addr() uintptr })
	if memory || g.content() != nil {
		return g.damaged(panicked)
	}
	return nil
}

// recoverFault is deferred around code of the app's that reads the file. A panic that is no
// fault goes on.
func (g *guard) recoverFault(err *error) {
	p := recover()
	if p == nil {
		return
	}
	fault := g.fault(p)
	if fault == nil {
		panic(p)
	}
	*err = faulted{fault}
}

// faulted is the error of code of the app's in whose transaction the file was found damaged.
type faulted struct{ error }

func (f faulted) Unwrap() error { return f.error }

// closeDB closes the database. It lets go of the lock alone where bbolt would wait for ever.
func (g *guard) closeDB(db *bbolt.DB) error {
	if g == nil || !g.stuck.Load() {
		return closeDB(db)
	}
	unlock(g.file)
	return g.file.Close()
}
