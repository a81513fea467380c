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
)

// Reader looks into a queue's file without changing it. Several processes may read
// one file at a time, but none while a [Queue] has it open.
type Reader struct {
	reader
}

// readerPatience is how long [OpenReader] waits for the file.
const readerPatience = 500 * time.Millisecond

// OpenReader opens the file at path to read. It waits for half a second at most while a
// process that writes holds the file, and then fails with [ErrLocked]; other
// errors are those of [Open], and fs.ErrNotExist when there is no file. Whose file it is
// does not matter.
func OpenReader(path string) (*Reader, error) {
	a := access{readOnly: true, timeout: readerPatience}
	o := new(bbolt.Options)
	db, file, err := openDB(path, a, o)
	if err != nil {
		return nil, fmt.Errorf("open queue %s to read: %w", path, err)
	}
	g, err := newGuard(path, file, nil) // it logs for writers only
	if err == nil {
		err = g.start()
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open queue %s to read: %w", path, err)
	}
	return &Reader{reader{db: db, guard: g, path: path, freelist: o.PreLoadFreelist, now: time.Now}}, nil
}

// UseClock sets the wall clock by which [Reader.DryRun] judges deadlines; the default is
// time.Now. Call it before the first DryRun.
func (r *Reader) UseClock(now func() time.Time) { r.now = now }

// Close lets go of the file.
func (r *Reader) Close() error { return r.guard.closeDB(r.db) }

// reader is what Queue and Reader share: short read transactions.
type reader struct {
	db       *bbolt.DB
	guard    *guard
	path     string
	freelist bool // the list of free pages is known
	now      func() time.Time
	orphans  orphans
}

// view runs fn in a read transaction, which holds the writer's pages as long as it
// lasts: fn is short and calls nobody else's code.
func (r *reader) view(ctx context.Context, fn func(*store) error) error {
	return r.read(ctx, func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		if err != nil {
			return err
		}
		return fn(&s)
	})
}

// View runs fn in a read transaction of the file, for an app that keeps its own data
// there; see [Queue.Update]. Fn sees one moment. It is short, since the file cannot reuse
// pages while it lasts, and calls nothing that changes the queue: that could wait for fn
// itself. A panic of fn's is not recovered, but a fault of memory in the file is: it gives
// [pawl.ErrCorrupt], with [ErrOverwritten] where another program wrote to the open file.
func (r *reader) View(ctx context.Context, fn func(tx *bbolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer r.guard.recoverFault(&err)
	tx, err := r.begin()
	if err != nil {
		return err
	}
	defer rollback(tx)
	return fn(tx)
}

// begin begins a read transaction.
func (r *reader) begin() (*bbolt.Tx, error) {
	tx, err := r.guard.begin(func() (*bbolt.Tx, error) { return r.db.Begin(false) })
	if err != nil && !errors.Is(err, ErrOverwritten) {
		err = pawl.ErrClosed
	}
	return tx, err
}

// read is view for what is not about the queue alone.
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
			err = r.guard.damaged(p)
		}
	}()
	tx, err := r.begin()
	if err != nil {
		return err
	}
	defer rollback(tx)
	return fn(tx)
}

// Stats is a queue file at one moment.
type Stats struct {
	pawl.Stats
	Path   string
	Format int   // version of the file's format
	Size   int64 // bytes of the file that are in use or free for reuse
	Free   int64 // of those, bytes that are free; -1 where it is not known
}

// Stats reads how many jobs each queue has in each state. It is a read of a few
// rows, whatever the number of jobs. A [Reader] knows the free bytes only of a file that
// was closed cleanly.
func (r *reader) Stats(ctx context.Context) (Stats, error) {
	stats := Stats{Path: r.path, Format: formatVersion}
	err := r.view(ctx, func(s *store) error {
		stats.Size, stats.Free = s.jobs.Tx().Size(), r.freeBytes()
		return s.eachQueue(func(n queueNumber, row *queueRow) error {
			counts, err := s.countsOf(n)
			stats.Queues = append(stats.Queues, pawl.QueueStats{Name: row.name, Counts: counts, Paused: row.paused, Oldest: s.oldest(n)})
			return err
		})
	})
	if err != nil {
		return Stats{}, fmt.Errorf("read statistics: %w", err)
	}
	return stats, nil
}

// freeBytes is what the list of free pages says.
func (r *reader) freeBytes() int64 {
	if r.freelist {
		s := r.db.Stats()
		return int64(s.FreePageN+s.PendingPageN) * int64(r.db.Info().PageSize)
	}
	return -1
}

// oldest finds the earliest ready-since of a queue: the first row of each kind, lane and
// priority.
func (s *store) oldest(n queueNumber) (oldest time.Time) {
	c := s.ready.Cursor()
	prefix := binary.BigEndian.AppendUint32(nil, uint32(n))
	var behind []byte
	for k, _ := c.Seek(prefix); len(k) == readyKeyWidth && bytes.HasPrefix(k, prefix) && bytes.Compare(k, behind) > 0; {
		if since := timeAt(k[lanePrefix+1:]); oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
		behind = append(bytes.Clone(k[:lanePrefix+1]), bytes.Repeat([]byte{0xff}, timeWidth+8)...)
		k, _ = c.Seek(behind)
	}
	return oldest
}

// Job reads one job with its state, payload and history. [pawl.ErrNotFound] says
// that it is not in the file: it was never there, or is done.
func (r *reader) Job(ctx context.Context, id pawl.ID) (e *pawl.Envelope, err error) {
	err = r.view(ctx, func(s *store) error {
		e, err = s.job(id)
		return err
	})
	return e, err
}
