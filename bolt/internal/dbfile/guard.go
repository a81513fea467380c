package dbfile

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

// Guard detects that another program interferes with the file of an open database: it truncates
// or overwrites the file, or the path no longer leads to it. The lock of the file keeps other
// queues out, but cp, mv and rm ignore it.
//
// content runs before a transaction begins, since bbolt faults in a file that is too short and
// would write into the pages of another file. place runs after a commit, before any caller is
// answered. A nil guard detects nothing.
type Guard struct {
	ClosedCleanly bool // the previous process closed the file; closing writes the list of free pages

	path   string   // absolute; each check follows symbolic links
	file   *os.File // the open file
	info   fs.FileInfo
	shared bool // the app commits too
	view   view
	log    pawl.Logger
	unseen sync.Once // logs once that the view changed

	mu      sync.Mutex                  // guards last
	last    pages.Meta                  // the newest known meta page; after a commit only its transaction ID is set
	wrong   atomic.Pointer[overwritten] // the first problem found; never reset
	closed  atomic.Bool                 // the guard detects nothing now
	stuck   atomic.Bool                 // bbolt panicked while it held its locks, and must not be called again
	onFound atomic.Pointer[func()]      // called when a problem is found
}

// overwritten is an ErrOverwritten.
type overwritten struct{ error }

// NewGuard guards a file that was opened under the name path. The current content of the file is
// the expected one.
func NewGuard(path string, f *os.File, log pawl.Logger) (*Guard, error) {
	g, err := newGuard(path, f, log)
	if err != nil {
		return nil, err
	}
	if g.last, err = pages.Newest(f); err != nil {
		return nil, pageError(err)
	}
	return g, nil
}

func newGuard(path string, f *os.File, log pawl.Logger) (*Guard, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &Guard{path: path, file: f, info: info, view: viewOf(path), log: log}, nil
}

// OnFound has fn called when a problem is found.
func (g *Guard) OnFound(fn func()) { g.onFound.Store(&fn) }

// GuardOver guards the file of an app's database. It returns [ErrReplaced] for an absolute path
// that does not lead to that file: bbolt waits for the lock of the file, and another process
// may replace the file in the meantime. It returns nil for a relative path that does not lead
// to the file, as when the app has changed its working directory.
func GuardOver(db *bbolt.DB, log pawl.Logger) (*Guard, error) {
	if !CanLock {
		return nil, nil // closing a second descriptor could release the lock of the first
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

// errReplacedBefore returns the error for a database whose path led to another file before the
// queue was opened.
func errReplacedBefore(path string) error {
	return fmt.Errorf("%w: %s is not the file of this database; close the database and open it again", ErrReplaced, path)
}

// identify starts a guard whose file must be that of db.
func (g *Guard) identify(db *bbolt.DB) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer Rollback(tx)
	meta, err := pages.Newest(g.file)
	if err == nil && meta.TxID+1 == uint64(tx.ID()) && meta.Root == uint64(tx.Cursor().Bucket().Root()) {
		g.last = meta
	}
	return nil
}

// Close ends a guard that opened its file itself.
func (g *Guard) Close() {
	if g != nil && g.shared {
		g.closed.Store(true)
		_ = g.file.Close()
	}
}

// Content checks by size and meta pages whether the file still holds what this process wrote.
func (g *Guard) Content() error {
	if g == nil {
		return nil
	}
	if w := g.wrong.Load(); w != nil {
		return w.error
	}
	difference := g.compare()
	if difference == nil || g.closed.Load() { // after Close, the file belongs to the process that opens it next
		return nil
	}
	return g.overwritten(difference)
}

// compare returns how the content of the file differs from what this process wrote, if it does.
func (g *Guard) compare() error {
	known := g.known()
	if err := g.holds(known.Bytes()); err != nil {
		return err
	}
	meta, err := pages.Newest(g.file)
	if errors.Is(err, pages.ErrForeign) || errors.Is(err, pages.ErrDamaged) {
		return errors.New("its first pages are not those of the queue")
	}
	if err != nil {
		return nil // the file is closed, which Begin reports, or the disk cannot read it
	}
	if err := g.holds(meta.Bytes()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch last := g.last; {
	case meta.TxID < known.TxID, !g.shared && meta.TxID > last.TxID+1, // one commit may be in progress
		!g.shared && meta.TxID == last.TxID && last.Root != 0 && meta.Root != last.Root:
		return fmt.Errorf("it shows transaction %d, and this process has written %d", meta.TxID, last.TxID)
	case meta.TxID == last.TxID, g.shared && meta.TxID > last.TxID:
		g.last = meta
	}
	return nil
}

func (g *Guard) known() pages.Meta {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// holds requires that the file has at least n bytes.
func (g *Guard) holds(size int64) error {
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
	return fmt.Errorf("it was truncated to %d bytes of %d", info.Size(), size)
}

// overwritten records that the file was overwritten, and returns the error for the first problem.
func (g *Guard) overwritten(problem any) error {
	err := fmt.Errorf("%w: %w: %v; stop the app, then restore a backup or save what is left with Salvage (jobctl db salvage)",
		ErrOverwritten, pawl.ErrCorrupt, problem)
	if g.wrong.CompareAndSwap(nil, &overwritten{err}) {
		if onFound := g.onFound.Load(); onFound != nil {
			(*onFound)()
		}
	}
	return g.wrong.Load().error
}

// Committed records that this process wrote a transaction.
func (g *Guard) Committed(transaction int) {
	if g != nil && !g.shared {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.last = pages.Meta{TxID: uint64(transaction)}
	}
}

// Place checks by device and inode whether the path leads to the open file. It takes about a
// microsecond. Windows does not let others rename or remove an open file.
func (g *Guard) Place() error {
	if g == nil {
		return nil
	}
	const save = "this process still has the old one, with everything that was acknowledged: " +
		"save it with Queue.Backup or jobctl db backup before the process ends, and put the copy in its place"
	same, err := leadsTo(g.path, g.info)
	if same {
		return nil
	}
	if now, statErr := g.file.Stat(); statErr == nil && Names(now) > 0 && g.view.changed() {
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
	return nil // or it cannot be determined
}

// view is the state of the folders on the path of a file when the process opened the file.
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

// changed reports whether the process has a different root folder now, or a folder is on
// another device now. A chroot or a mount changes where a path leads, but not the file.
func (v view) changed() bool {
	for _, was := range v {
		now, err := os.Lstat(was.path) // a link in the place of a folder is no mount
		if err != nil {
			continue
		}
		if now.IsDir() && device(now) != device(was.info) || filepath.Dir(was.path) == was.path && !os.SameFile(now, was.info) {
			return true
		}
	}
	return false
}

// Begin begins a transaction if the file holds the expected content.
func (g *Guard) Begin(begin func() (*bbolt.Tx, error)) (*bbolt.Tx, error) {
	if err := g.Content(); err != nil {
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

// Damaged returns the error for a panic during a transaction: the interference with the file,
// or else a damaged page.
func (g *Guard) Damaged(panicked any) error {
	if err := g.Content(); err != nil {
		return err
	}
	if g != nil && g.stuck.Load() {
		return g.overwritten(panicked)
	}
	return fmt.Errorf("%w: the pages of the file are damaged: %v", pawl.ErrCorrupt, panicked)
}

// fault returns the error for a panic in the app's code, if the panic is a memory fault in the
// map of the file or the file was overwritten. It returns nil for any other panic.
func (g *Guard) fault(panicked any) error {
	_, memory := panicked.(interface{ Addr() uintptr })
	if memory || g.Content() != nil {
		return g.Damaged(panicked)
	}
	return nil
}

// RecoverFault is deferred around app code that reads the file. It re-panics if the panic is
// not a fault.
func (g *Guard) RecoverFault(err *error) {
	p := recover()
	if p == nil {
		return
	}
	fault := g.fault(p)
	if fault == nil {
		panic(p)
	}
	*err = Faulted{fault}
}

// Faulted returns the error of app code in whose transaction the file was found damaged.
type Faulted struct{ Err error }

func (f Faulted) Error() string { return f.Err.Error() }
func (f Faulted) Unwrap() error { return f.Err }

// CloseDB closes the database. If bbolt would wait forever, it only releases the lock.
func (g *Guard) CloseDB(db *bbolt.DB) error {
	if g != nil {
		g.closed.Store(true)
	}
	if g == nil || !g.stuck.Load() {
		return closeDB(db)
	}
	unlock(g.file)
	return g.file.Close()
}
