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
	"github.com/gopawl/pawl/internal/atomicfile"
)

// Backup writes a copy of the whole file, the app's own data included, to a new file at
// path, while the queue works on. The copy is the file at one moment, and a queue like
// any other: what is leased at that moment is ready again when the copy is opened.
//
// The copy appears whole or not at all. A path that exists gives fs.ErrExist, a disk that
// is full [ErrDisk]. While it lasts, pages that become free are not used again, and a
// commit that must map a larger file waits, as does Close: write to a fast disk, or end
// ctx.
//
// What is damaged is damaged in the copy. A queue that a failed sync has stopped can
// still be copied, best to another disk.
//
// A plain copy of a file that is in use is broken more often than not; this is how to
// make one. Its progress, see [WithProgress], is in bytes.
func (r *reader) Backup(ctx context.Context, path string) error {
	err := created(path, func() error {
		return atomicfile.Create(path, func(f *os.File) error {
			_, err := r.copyTo(ctx, f)
			return unnamed(err)
		})
	})
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

// WriteBackup writes the copy that [Queue.Backup] makes to w, and returns how many bytes
// were written. It is for a receiver elsewhere, and holds the file as Backup does for as long
// as that takes: end ctx when the receiver is slow.
//
// Only after a nil error was everything written. Nothing in the stream marks its end, so
// who receives it compares its length: with the result, or with what the function given to
// [WithProgress] is told as the total before the first byte is written. A copy that is cut is
// refused when it is opened, since its first page says how many there are.
//
// Its progress is in bytes. Errors of w are returned as they are, wrapped.
func (r *reader) WriteBackup(ctx context.Context, w io.Writer) (written int64, err error) {
	if written, err = r.copyTo(ctx, w); err != nil {
		return written, fmt.Errorf("write a backup: %w", err)
	}
	return written, nil
}

// copyTo writes the file as it is at one moment.
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

// contextWriter stops writing when its context ends. It keeps its error, whose type
// bbolt does not always hand on.
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

// rowOverhead is the bytes that a page has for each row besides its key and value.
const rowOverhead = 16

// compactBytes is how much of a compaction one transaction copies.
const compactBytes = 4 << 20

// Compact writes the whole content of the file, the app's own data included, to a new
// file at path, without the free pages: the file of a queue grows and never shrinks. The new
// file lacks what the queue stores from then on, so it must not take the place of a file that
// is open; [CompactInPlace] is for that.
//
// Pages that are damaged give [pawl.ErrCorrupt]; a damaged row is copied as it is.
// Otherwise it is like [Queue.Backup], but that its progress is an estimate: the bytes of
// the rows that were copied, of those of the pages that are in use.
func (r *reader) Compact(ctx context.Context, path string) error {
	err := create(path, func(temp string) error { return r.compactInto(ctx, temp) })
	if err != nil {
		return fmt.Errorf("compact to %s: %w", path, err)
	}
	return nil
}

// CompactInPlace replaces the file at path by a copy without its free pages. It is for a file
// that no process has open: it holds the lock of the file all the time, and returns
// [ErrLocked] when another process has it.
//
// The copy is synced and checked before it takes the place of the file, with the same mode and
// owner. A process that is killed midway leaves the old file or the new one, and at worst a
// temporary file ".pawl-new-*" beside it. Options are those of [Open]; only LockTimeout,
// Insecure and Logger count. A file with several names (hard links) gives [pawl.ErrInvalid],
// since the other names would keep the old file.
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
	path, err := realPath(path, o.Insecure)
	if err != nil {
		return err
	}
	a := access{timeout: o.LockTimeout, insecure: o.Insecure, log: o.Logger}
	db, file, err := openDB(path, a, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer db.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if n := names(info); n > 1 {
		return &pawl.InvalidError{Field: "path", Reason: fmt.Sprintf("the file has %d names (hard links), and the others would keep the old file; remove them first", n)}
	}
	r := &reader{db: db, path: path, freelist: true}
	return replaceFile(path, file, func(to *os.File) error { return r.compactInto(ctx, to.Name()) })
}

// compactInto writes the content of the file into an empty one.
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
		err = dst.Sync() // once, in place of after every part: nobody opens a part
	}
	return errors.Join(err, dst.Close())
}

// compaction copies buckets in transactions of a bounded size.
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
	growBy(c.tx)
	defer func() { rollback(c.tx) }()
	err = from.ForEach(func(name []byte, b *bbolt.Bucket) error { return c.bucket([][]byte{name}, nil, b) })
	if err != nil {
		return err
	}
	return c.tx.Commit()
}

// bucket copies the bucket that the path leads to. Roots are the pages where the buckets
// above it begin: one that is found again there, and keys that do not rise, are a damage
// in which the copy would find no end.
func (c *compaction) bucket(path [][]byte, roots []uint64, from *bbolt.Bucket) error {
	if root := uint64(from.Root()); root != 0 { // 0 is a small bucket inside of its parent's page
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
			to = nil // the transaction may be another one
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

// next commits what is large enough, and returns the bucket that the path leads to.
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
		growBy(c.tx)
	}
	return c.at(path)
}

// at finds or makes the bucket that the path leads to. Keys come in order, so pages are
// filled to the brim.
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
