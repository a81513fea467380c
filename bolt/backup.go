package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
)

// Backup writes a copy of the whole file, including the app's own data, to a new file at path while
// the queue keeps working. The copy is a snapshot. It is an ordinary queue: jobs that are leased in
// the snapshot are ready again when the copy is opened.
//
// The copy appears atomically. Backup returns fs.ErrExist if path exists, and [ErrDisk] if the
// disk is full. While it runs, freed pages are not reused, and Close and any commit that must
// map a larger file wait. So write to a fast disk, or cancel ctx.
//
// Damage in the file is copied. After a failed sync has stopped the queue, Backup still works,
// preferably to another disk.
//
// A plain copy of a file in use is usually broken. Use Backup to make a copy. Its progress, see
// [driver.WithProgress], is in bytes.
func (r *reader) Backup(ctx context.Context, path string) error {
	err := dbfile.Write(path, func(f *os.File) error {
		_, err := r.copyTo(ctx, f)
		return err
	})
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

// WriteBackup writes the copy that [Queue.Backup] makes to w, and returns the number of bytes
// written. Use it to send the copy elsewhere. It holds the file as Backup does until it
// returns, so cancel ctx if the receiver is slow.
//
// The copy is complete only if the error is nil. Nothing in the stream marks its end, so a
// receiver must compare its length, either with the result or with the total that the function
// given to [driver.WithProgress] receives before the first byte. Open refuses a truncated copy, since
// the first page has the number of pages.
//
// Progress is in bytes. Errors of w are wrapped.
func (r *reader) WriteBackup(ctx context.Context, w io.Writer) (written int64, err error) {
	if written, err = r.copyTo(ctx, w); err != nil {
		return written, fmt.Errorf("write a backup: %w", err)
	}
	return written, nil
}

// copyTo writes the file as of one moment.
func (r *reader) copyTo(ctx context.Context, w io.Writer) (written int64, err error) {
	err = r.read(ctx, func(tx *bbolt.Tx) error {
		to := contextWriter{ctx: ctx, to: w, progress: beginProgress(ctx, tx.Size())}
		written, err = tx.WriteTo(&to)
		switch {
		case to.err != nil:
			return to.err
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: the file was cut while it was open", pawl.ErrCorrupt)
		case err == nil:
			to.progress.end()
		}
		return err
	})
	return written, err
}

// contextWriter stops writing when its context ends. It keeps the error, because bbolt does not
// always preserve its type.
type contextWriter struct {
	ctx      context.Context
	to       io.Writer
	err      error
	progress *progress
}

func (w *contextWriter) Write(b []byte) (n int, err error) {
	if w.err = w.ctx.Err(); w.err == nil {
		callOut(func() { n, w.err = w.to.Write(b) })
		w.progress.add(int64(n))
	}
	return n, w.err
}

// rowOverhead is how many bytes a page needs for each row besides its key and value.
const rowOverhead = 16

// compactBytes is how many bytes of a compaction one transaction copies.
const compactBytes = 4 << 20

// Compact writes the whole content of the file, including the app's own data but without the
// free pages, to a new file at path. The file of a queue grows and never shrinks. The new file
// lacks everything that the queue stores later, so it must not replace an open file. Use
// [CompactInPlace] for that.
//
// Damaged pages return [pawl.ErrCorrupt]. Damaged rows are copied unchanged. Otherwise Compact
// is like [Queue.Backup], except that its progress is an estimate: bytes of copied rows, out of
// the bytes of the pages in use.
func (r *reader) Compact(ctx context.Context, path string) error {
	err := dbfile.Create(path, func(temp string) error { return r.compactInto(ctx, temp) })
	if err != nil {
		return fmt.Errorf("compact to %s: %w", path, err)
	}
	return nil
}

// CompactInPlace replaces the file at path by a copy without its free pages. No process may
// have the file open: CompactInPlace holds the file's lock throughout, and returns [ErrLocked]
// if another process has the lock.
//
// It syncs and checks the copy before the copy replaces the file with the same mode and owner. If
// the process is killed, path has either the old file or the new one, and a temporary file
// ".pawl-new-*" may remain beside it. Of the options of [Open], only LockTimeout, Insecure, and
// Logger apply. A file with several names (hard links) returns [pawl.ErrInvalid], since the other
// names would keep the old file.
func CompactInPlace(ctx context.Context, path string, opts *Options) error {
	o, err := opts.withDefaults()
	if err == nil {
		err = compactInPlace(ctx, path, o)
	}
	if err != nil {
		return fmt.Errorf("compact %s in place: %w", path, err)
	}
	return nil
}

func compactInPlace(ctx context.Context, path string, o Options) error {
	if path == "" {
		return &pawl.InvalidError{Field: "path", Reason: "is empty"}
	}
	path, err := dbfile.RealPath(path, o.Insecure)
	if err != nil {
		return err
	}
	a := dbfile.Access{Timeout: o.LockTimeout, Insecure: o.Insecure, Log: o.Logger, Check: checkFormat}
	db, file, err := dbfile.Open(path, a, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer db.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if n := dbfile.Names(info); n > 1 {
		return &pawl.InvalidError{Field: "path", Reason: fmt.Sprintf("the file has %d names (hard links), and the others would keep the old file; remove them first", n)}
	}
	r := &reader{db: db, path: path, freelist: true}
	return dbfile.Replace(path, file, checkFormat, func(to *os.File) error { return r.compactInto(ctx, to.Name()) })
}

// compactInto writes the content of the file into an empty file.
func (r *reader) compactInto(ctx context.Context, temp string) error {
	dst, err := bbolt.Open(temp, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	err = r.read(ctx, func(tx *bbolt.Tx) error {
		c := compaction{ctx: ctx, dst: dst, progress: beginProgress(ctx, tx.Size()-max(0, r.freeBytes()))}
		if err := c.run(tx); err != nil {
			return err
		}
		c.progress.end()
		return nil
	})
	if err == nil {
		err = dst.Sync() // once at the end and not after every part: no process opens a partial file
	}
	return errors.Join(err, dst.Close())
}

// compaction copies buckets in transactions of limited size.
type compaction struct {
	ctx   context.Context
	dst   *bbolt.DB
	tx    *bbolt.Tx
	bytes int

	progress *progress
}

func (c *compaction) run(from *bbolt.Tx) (err error) {
	if c.tx, err = c.dst.Begin(true); err != nil {
		return err
	}
	dbfile.GrowBy(c.tx)
	defer func() { dbfile.Rollback(c.tx) }()
	err = from.ForEach(func(name []byte, b *bbolt.Bucket) error { return c.bucket([][]byte{name}, nil, b) })
	if err != nil {
		return err
	}
	return c.tx.Commit()
}

// bucket copies the bucket at path. Roots are the root pages of the enclosing buckets. If one
// of them occurs again, or keys do not ascend, the file is damaged and the copy might never
// end.
func (c *compaction) bucket(path [][]byte, roots []uint64, from *bbolt.Bucket) error {
	if root := uint64(from.Root()); root != 0 { // 0 means a small bucket inside its parent's page
		if slices.Contains(roots, root) {
			return fmt.Errorf("%w: bucket %q lies inside itself", pawl.ErrCorrupt, path)
		}
		roots = append(roots[:len(roots):len(roots)], root)
	}
	to, err := c.next(path)
	if err != nil {
		return err
	}
	if err := to.SetSequence(from.Sequence()); err != nil {
		return err
	}
	var last []byte
	cursor := from.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if last != nil && bytes.Compare(k, last) <= 0 {
			return fmt.Errorf("%w: the keys of bucket %q are out of order", pawl.ErrCorrupt, path)
		}
		if len(k) > bbolt.MaxKeySize || int64(len(v)) > from.Tx().Size() {
			return fmt.Errorf("%w: bucket %q has a row of %d and %d bytes", pawl.ErrCorrupt, path, len(k), len(v))
		}
		last = k
		c.bytes += len(k) + len(v)
		c.progress.add(int64(len(k) + len(v) + rowOverhead))
		if v == nil {
			if err := c.bucket(append(path[:len(path):len(path)], k), roots, from.Bucket(k)); err != nil {
				return err
			}
			to = nil // the transaction may be a new one
			continue
		}
		if to == nil || c.bytes > compactBytes {
			if to, err = c.next(path); err != nil {
				return err
			}
		}
		if err := to.Put(k, v); err != nil {
			return err
		}
	}
	return nil
}

// next commits if the transaction is large enough, and returns the bucket at path.
func (c *compaction) next(path [][]byte) (_ *bbolt.Bucket, err error) {
	if c.bytes > compactBytes {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.tx.Commit(); err != nil {
			return nil, err
		}
		c.bytes = 0
		if c.tx, err = c.dst.Begin(true); err != nil {
			return nil, err
		}
		dbfile.GrowBy(c.tx)
	}
	return c.at(path)
}

// at finds or creates the bucket at path. Keys come in order, so pages are filled completely.
func (c *compaction) at(path [][]byte) (b *bbolt.Bucket, err error) {
	b, err = c.tx.CreateBucketIfNotExists(path[0])
	for _, name := range path[1:] {
		if err != nil {
			return nil, err
		}
		b, err = b.CreateBucketIfNotExists(name)
	}
	if err == nil {
		b.FillPercent = 1
	}
	return b, err
}
