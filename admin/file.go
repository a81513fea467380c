package admin

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// FileOptions configures [File] and [Open]. A nil *FileOptions and every zero field mean the
// default.
type FileOptions struct {
	// Insecure accepts a file that others may write to; see bolt.Options.
	Insecure bool

	// Timeout is how long [Open] waits for the app that has the file to answer a call, as in
	// [DialOptions]. The file itself does not use it.
	Timeout time.Duration

	// Logger is the queue's logger while the file is open for writing. The default discards
	// everything: errors are returned.
	Logger pawl.Logger

	// Notice receives sentences for people about what opening the file changed, and about what a
	// failed change means. Nil discards them.
	Notice func(string)

	// Now is the wall clock. The default is time.Now.
	Now func() time.Time
}

// fileLock is how long a change waits for another process to close the file.
const fileLock = 500 * time.Millisecond

// File returns the [Admin] of the file of a stopped app. The first read opens the file for
// reading, and the first change opens it for writing. Either keeps the app from starting until
// Close, so be quick. A missing file gives fs.ErrNotExist, and a file that another process has
// open gives bolt.ErrLocked.
//
// Opening the file for writing makes every leased job ready again and counts a crash for it, as
// the app would at its next start. File does not know the app's limit on crashes, so it applies
// none: no job becomes dead because an operator changed another one. A job that was cancelled or
// is past its deadline does become dead, as it would in the app, and Notice reports it. The
// app's limit on payloads is not known either; the largest limit that any queue accepts applies.
func File(path string, opts *FileOptions) Admin {
	f := &file{path: path}
	f.direct = direct{f}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Logger == nil {
		f.opts.Logger = hclog.NewNullLogger()
	}
	if f.opts.Notice == nil {
		f.opts.Notice = func(string) {}
	}
	return f
}

// file is the result of File.
type file struct {
	direct
	path string
	opts FileOptions

	mu     sync.RWMutex // held for reading by calls, and for writing to open and close
	reader *bolt.Reader // nil before the first read, and after the first change
	queue  *bolt.Queue  // nil before the first change
	closed bool
	took   int // leases that opening recovered; the first Reap counts them

	poisoned sync.Once // the failure was reported
}

// look runs fn on the file, opened for reading or writing.
func (f *file) look(fn func(looker) error) error {
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
func (f *file) change(fn func(*bolt.Queue) error) error {
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

func (f *file) openToRead() error {
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
	if f.opts.Now != nil {
		r.UseClock(f.opts.Now)
	}
	f.reader = r
	return nil
}

func (f *file) openToWrite() (err error) {
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
		LockTimeout: fileLock,
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
func (f *file) checkUnlocked() error {
	r, err := bolt.OpenReader(f.path)
	switch {
	case err == nil:
		return r.Close()
	case errors.Is(err, bolt.ErrLocked):
		return err
	}
	return nil
}

// Reap implements Admin. The first call counts the leases that opening the file recovered.
func (f *file) Reap(ctx context.Context) (int, error) {
	n, err := f.direct.Reap(ctx)
	if err != nil {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, f.took = n+f.took, 0
	return n, nil
}

func (f *file) Workflows() Workflows { return f.runs(false) }

func (f *file) Events(context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, ErrNotLive) }
}

// Close implements Admin. It waits for calls in progress.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
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
