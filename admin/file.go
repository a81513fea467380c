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

// FileOptions are the settings of [File] and [Open]. A nil *FileOptions, and every zero
// field, means the default.
type FileOptions struct {
	// Insecure takes a file that others may write to; see bolt.Options.
	Insecure bool

	// Timeout is how long [Open] lets the app that has the file take to answer a call, as
	// in [DialOptions]. The file itself does not use it.
	Timeout time.Duration

	// Logger is the queue's logger while it is open to write. The default drops everything:
	// errors are returned.
	Logger pawl.Logger

	// Notice is called with a sentence for people about what opening the file changed, and
	// about what a failed change means. Nil drops it.
	Notice func(string)

	// Now is the wall clock. The default is time.Now.
	Now func() time.Time
}

// fileLock is how long a change waits for another process to close the file.
const fileLock = 500 * time.Millisecond

// File is the [Admin] of the file of a stopped app. The first read opens the file to read, and
// the first change opens it to write. Either keeps the app from starting until Close, so be
// quick. A missing file gives fs.ErrNotExist, and a file that a process has open
// bolt.ErrLocked.
//
// Opening the file to write makes every leased job ready again and counts a crash for it, as
// the app would at its next start. The app's limit of crashes is not known here, so none is
// applied: no job dies because an operator changed another. A job that was cancelled or is
// past its deadline dies, as it would for the app. Notice reports it. The app's limit for
// payloads is not known either; the largest one that any queue takes applies.
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

// file is what File returns.
type file struct {
	direct
	path string
	opts FileOptions

	mu     sync.RWMutex // held to read by calls, and to write to open and close
	reader *bolt.Reader // nil before the first look, and from the first change on
	queue  *bolt.Queue  // nil before the first change
	closed bool
	took   int // leases that opening took back; the first Reap counts them

	poisoned sync.Once // the failure was reported
}

// look runs fn over the file, open to read at least.
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

// change runs fn over the file, open to write.
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
	if errors.Is(err, pawl.ErrPoisoned) || errors.Is(err, pawl.ErrUnknownOutcome) {
		f.poisoned.Do(func() { f.opts.Notice(poisonNotice(err)) })
	}
	return err
}

// poisonNotice says why nothing more can be changed, and what to do.
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
	before, err := os.Stat(f.path) // the queue would make a file where there is none
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
	f.tell(before, &found)
	return nil
}

// checkUnlocked refuses a file that another process has open. Opening the file to write reports
// or repairs everything else.
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

// Reap implements Admin. The first one counts the leases that opening the file took back.
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

// Close implements Admin. It waits for calls under way.
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
