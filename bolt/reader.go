package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
)

// Reader reads a queue's file without changing it. Several processes may read one file at a
// time, but not while a [Queue] has it open.
type Reader struct {
	reader
}

// readerTimeout is how long [OpenReader] waits for the file.
const readerTimeout = 500 * time.Millisecond

// OpenReader opens the file at path for reading. If a writing process holds the file,
// OpenReader waits for up to half a second and then returns [ErrLocked]. It returns
// fs.ErrNotExist if the file does not exist, and otherwise the errors of [Open]. It ignores the
// owner of the file.
func OpenReader(path string) (*Reader, error) {
	a := dbfile.Access{ReadOnly: true, Timeout: readerTimeout, Check: checkFormat}
	o := new(bbolt.Options)
	db, file, err := dbfile.Open(path, a, o)
	if err != nil {
		return nil, fmt.Errorf("open queue %s to read: %w", path, err)
	}
	g, err := dbfile.NewGuard(path, file, nil) // it logs only for writers
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open queue %s to read: %w", path, err)
	}
	return &Reader{reader{db: db, guard: g, path: path, freelist: o.PreLoadFreelist, now: time.Now}}, nil
}

// UseClock sets the wall clock that [Reader.DryRun] uses to judge deadlines. The default is
// time.Now. Call it before the first DryRun.
func (r *Reader) UseClock(now func() time.Time) { r.now = now }

// Close releases the file.
func (r *Reader) Close() error { return r.guard.CloseDB(r.db) }

// reader is what Queue and Reader share: short read transactions.
type reader struct {
	db       *bbolt.DB
	guard    *dbfile.Guard
	path     string
	freelist bool // the list of free pages is known
	now      func() time.Time
	meter    *driver.Meter // nil in a Reader
	orphans  orphans
}

// view runs fn in a read transaction, which keeps the writer from reusing pages while it lasts.
// So fn is short and does not call foreign code.
func (r *reader) view(ctx context.Context, fn func(*store) error) error {
	return r.read(ctx, func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		if err != nil {
			return err
		}
		return fn(&s)
	})
}

// View runs fn in a read transaction of the file, for an app that keeps its own data there. See
// [Queue.Update]. Fn sees a snapshot. It must be short, since the file cannot reuse pages in that
// time. It must not call anything that changes the queue: the call could wait for fn itself. View
// does not recover a panic of fn, but it does recover a memory fault in the file: it returns
// [pawl.ErrCorrupt], with [ErrOverwritten] if another program wrote to the open file.
func (r *reader) View(ctx context.Context, fn func(tx *bbolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer r.guard.RecoverFault(&err)
	tx, err := r.begin()
	if err != nil {
		return err
	}
	defer dbfile.Rollback(tx)
	return fn(tx)
}

// begin begins a read transaction.
func (r *reader) begin() (*bbolt.Tx, error) {
	tx, err := r.guard.Begin(func() (*bbolt.Tx, error) { return r.db.Begin(false) })
	if err != nil && !errors.Is(err, ErrOverwritten) {
		err = pawl.ErrClosed
	}
	return tx, err
}

// read is like view, for more than the queue's own rows.
func (r *reader) read(ctx context.Context, fn func(*bbolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case outside:
			panic(p.panicked)
		default:
			err = r.guard.Damaged(p)
		}
	}()
	tx, err := r.begin()
	if err != nil {
		return err
	}
	defer dbfile.Rollback(tx)
	return fn(tx)
}

// Stats reads how many jobs each queue has in each state. It reads a few rows, no matter how
// many jobs there are. A [Reader] knows the free bytes only of a file that was closed cleanly.
func (r *reader) Stats(ctx context.Context) (pawl.Stats, error) {
	stats := pawl.Stats{Storage: pawl.Storage{Path: r.path, Format: formatVersion}}
	err := r.view(ctx, func(s *store) error {
		stats.Size, stats.Free = s.jobs.Tx().Size(), r.freeBytes()
		return s.eachQueue(func(n queueNumber, row *queueRow) error {
			counts, err := s.countsOf(n)
			stats.Queues = append(stats.Queues, pawl.QueueStats{Name: row.name, Counts: counts, Paused: row.paused, Limits: row.limits, Declared: row.declared, Oldest: s.oldest(n), Rests: driver.Rests(row.rests, r.now())})
			return err
		})
	})
	if err != nil {
		return pawl.Stats{}, fmt.Errorf("read statistics: %w", err)
	}
	return stats, nil
}

// freeBytes returns the size of the pages in the list of free pages.
func (r *reader) freeBytes() int64 {
	if r.freelist {
		return unused(r.db)
	}
	return -1
}

// oldest finds the earliest ready time of a queue, from the first row of each kind, lane and
// priority.
func (s *store) oldest(n queueNumber) (oldest time.Time) {
	c := s.ready.Cursor()
	prefix := binary.BigEndian.AppendUint32(nil, uint32(n))
	var behind []byte
	for k, v := c.Seek(prefix); len(k) == readyKeyWidth && bytes.HasPrefix(k, prefix) && bytes.Compare(k, behind) > 0; {
		if since := s.readySince(k, v); oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
		behind = append(bytes.Clone(k[:lanePrefix+1]), bytes.Repeat([]byte{0xff}, timeWidth+8)...)
		k, v = c.Seek(behind)
	}
	return oldest
}

// readySince returns since when the job of a row in ready is ready.
func (s *store) readySince(key, sealed []byte) time.Time {
	if row, err := parseIndexRow(key, sealed); err == nil && row.flags&hasTag != 0 {
		if j, err := s.listed(row.id); err == nil {
			return j.NotBefore
		}
	}
	return timeAt(key[lanePrefix+1:])
}

// Job reads one job with its state, payload and history. It returns [pawl.ErrNotFound] if the
// job is not in the file, because it never was or because it is done.
func (r *reader) Job(ctx context.Context, id pawl.ID) (e *pawl.Envelope, err error) {
	err = r.view(ctx, func(s *store) error {
		e, err = s.job(id)
		return err
	})
	return e, err
}
