// Package offline opens the queue in the file of a stopped app, for operators. Its File is an
// admin.Store. Command jobctl uses it when no app serves the file.
package offline

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Options configures [New]. A nil *Options and every zero field mean the default.
type Options struct {
	// Insecure accepts a file that others may write to; see bolt.Options.
	Insecure bool

	// Logger is the queue's logger while the file is open for writing. The default discards
	// everything: errors are returned.
	Logger pawl.Logger

	// Notice receives sentences for people: what opening the file changed, and what a failed change
	// means. Nil discards them.
	Notice func(string)

	// Now is the wall clock. The default is time.Now.
	Now func() time.Time
}

// lockTimeout is how long a change waits for another process to close the file.
const lockTimeout = 500 * time.Millisecond

// File is the queue in the file of a stopped app. The first read opens the file for reading, and
// the first change opens it for writing. Until Close, the app cannot start, so be quick. A missing
// file returns fs.ErrNotExist, and a file that another process has open returns bolt.ErrLocked. Its
// methods are safe for concurrent use, and return the errors of the methods of bolt.Queue with the
// same names.
//
// Opening the file for writing makes every leased job ready again and counts a crash for it, as
// the app would at its next start. File does not know the app's limit on crashes, so it applies
// none: no job becomes dead because an operator changed another one. A job that was cancelled or
// is past its deadline does become dead, as it would in the app, and Notice reports it. The
// app's limit on payloads is not known either; the largest limit that any queue accepts applies.
type File struct {
	path string
	opts Options
	done chan struct{}

	mu     sync.RWMutex // held for reading by calls, and for writing to open and close
	reader *bolt.Reader // nil before the first read, and after the first change
	queue  *bolt.Queue  // nil before the first change
	closed bool
	took   int // leases that opening recovered; the first Reap counts them

	poisoned sync.Once // the failure was reported
}

// New returns the file at path. It opens nothing.
func New(path string, opts *Options) *File {
	f := &File{path: path, done: make(chan struct{})}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Logger == nil {
		f.opts.Logger = hclog.NewNullLogger()
	}
	if f.opts.Notice == nil {
		f.opts.Notice = func(string) {}
	}
	if f.opts.Now == nil {
		f.opts.Now = time.Now
	}
	return f
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Locked reports whether a process has the file open for writing. It does not wait. Where the
// system cannot answer, it returns false, and opening the file reports the lock.
func (f *File) Locked() bool { return locked(f.path) }

// look runs fn on the file, opened for reading or writing.
func (f *File) look(fn func(inspector) error) error {
	f.mu.RLock()
	for f.queue == nil && f.reader == nil {
		f.mu.RUnlock()
		if err := f.openToRead(); err != nil {
			return err
		}
		f.mu.RLock()
	}
	defer f.mu.RUnlock()
	if f.queue != nil {
		return fn(f.queue)
	}
	return fn(f.reader)
}

// change runs fn on the file, opened for writing.
func (f *File) change(fn func(*bolt.Queue) error) error {
	f.mu.RLock()
	for f.queue == nil {
		f.mu.RUnlock()
		if err := f.openToWrite(); err != nil {
			return err
		}
		f.mu.RLock()
	}
	defer f.mu.RUnlock()
	err := fn(f.queue)
	if errors.Is(err, pawl.ErrPoisoned) {
		f.poisoned.Do(func() { f.opts.Notice(poisonNotice(err)) })
	}
	return err
}

// poisonNotice explains why nothing more can be changed, and what to do.
func poisonNotice(err error) string {
	if errors.Is(err, bolt.ErrReplaced) || errors.Is(err, bolt.ErrOverwritten) {
		return "another program replaced or overwrote the file while it was changed, so this run changes nothing more: look again at what was to be done"
	}
	return "the disk failed while the file was changed, so nothing more is changed by this run: check the disk, and look again at what was to be done; the next open makes a sound copy of the file first"
}

func (f *File) openToRead() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return pawl.ErrClosed
	case f.queue != nil || f.reader != nil:
		return nil
	}
	r, err := bolt.OpenReader(f.path)
	if err != nil {
		return err
	}
	r.UseClock(f.opts.Now)
	f.reader = r
	return nil
}

func (f *File) openToWrite() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return pawl.ErrClosed
	case f.queue != nil:
		return nil
	}
	if f.reader != nil {
		err = f.reader.Close()
		f.reader = nil
	} else {
		err = f.checkUnlocked()
	}
	if err != nil {
		return err
	}
	before, err := os.Stat(f.path) // the queue would create a missing file
	if err != nil {
		return err
	}
	var found orphans
	q, err := bolt.Open(f.path, &bolt.Options{
		MaxCrashes:  bolt.NoMaxCrashes,
		MaxPayload:  pawl.MaxBatchBytes,
		LockTimeout: lockTimeout,
		Insecure:    f.opts.Insecure,
		Logger:      f.opts.Logger,
		Now:         f.opts.Now,
		OnEvent:     found.hear,
	})
	if err != nil {
		return err
	}
	f.queue = q
	f.noticeChanges(before, &found)
	return nil
}

// checkUnlocked rejects a file that another process has open. Opening the file for writing
// reports or repairs everything else.
func (f *File) checkUnlocked() error {
	r, err := bolt.OpenReader(f.path)
	switch {
	case err == nil:
		return r.Close()
	case errors.Is(err, bolt.ErrLocked):
		return err
	}
	return nil
}

// Close closes the file. It waits for calls in progress.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.done)
	}
	var err error
	if f.reader != nil {
		err = f.reader.Close()
	}
	if f.queue != nil {
		err = errors.Join(err, f.queue.Close())
	}
	f.reader, f.queue = nil, nil
	return err
}
