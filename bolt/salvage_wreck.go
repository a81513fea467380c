package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// wreck is a damaged file, to read.
type wreck struct {
	*os.File
	size  int64
	metas []pages.Meta // those that are sound, and the one to read by is the first
	older bool         // that one is not the newest

	bbolt     bool // a meta page says that it is a file of bbolt's
	queueless bool // its tree leads to no queue
	foreign   bool // and is sound: another program's, or that of a torn copy

	progress *progress // nil until the copying begins
}

// ReadAt is that of the file, and counts.
func (w *wreck) ReadAt(b []byte, off int64) (n int, err error) {
	n, err = w.File.ReadAt(b, off)
	w.progress.add(int64(n))
	return n, err
}

func openWreck(ctx context.Context, path string) (w *wreck, err error) {
	if err := inspectPath(path); err != nil {
		return nil, advise(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, advise(err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	// A file system without locks has nobody to keep out.
	if locked, err := tryLock(f, true); err == nil && !locked {
		return nil, fmt.Errorf("%w%s; stop it, or salvage a copy", ErrLocked, lockHolder(path))
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	w = &wreck{File: f, size: info.Size()}
	w.metas, _ = pages.Metas(f) // without one all pages are searched
	w.bbolt = len(w.metas) > 0
	return w, w.choose(ctx)
}

// choose puts the meta page first by which the file is read: the newest that leads to the
// jobs, or else to any bucket of a queue.
func (w *wreck) choose(ctx context.Context) error {
	w.queueless = true
	best := 0
	for i, m := range w.metas {
		found, err := w.survey(ctx, m)
		if err != nil {
			return err
		}
		if found > best {
			best, w.older, w.queueless = found, i > 0, false
			w.metas[0], w.metas[i] = w.metas[i], w.metas[0]
		}
	}
	if w.queueless && w.foreign {
		// In a plain copy of a file that was written to meanwhile, the root may be a page that has
		// become another one. What the tree reaches is not lost for that: all pages are searched.
		w.metas = nil
	}
	return nil
}

// survey looks what a meta page leads to: 2 when it is the jobs of a queue, 1 when it is
// something of a queue. It notes a newest tree that is sound and leads to no queue at all.
func (w *wreck) survey(ctx context.Context, m pages.Meta) (found int, err error) {
	sound, first := true, m == w.metas[0]
	_, err = pages.Walk(ctx, w, w.size, m, pages.Visitor{
		Bucket: func(path [][]byte, _ uint64) error {
			if !bytes.Equal(path[0], bucketRoot) {
				return pages.ErrSkipBucket
			}
			if len(path) == 1 {
				return nil
			}
			found = max(found, 1)
			if bytes.Equal(path[1], bucketJobs) {
				found = 2
			}
			return pages.ErrSkipBucket
		},
		Element: func([][]byte, pages.Element) error { return nil },
		Problem: func(pages.Problem) { sound = false },
	})
	if err == nil && found == 0 && sound && first {
		w.foreign = true
	}
	return found, err
}

// nothing is the error for a file in which nothing of a queue was found.
func (w *wreck) nothing() error {
	if w.foreign {
		return errForeign
	}
	return fmt.Errorf("%w: nothing of a queue was found in it; restore a backup. %s", pawl.ErrCorrupt, plainCopy)
}

// noPages is the error for a file in which no page of bbolt's was found.
func (w *wreck) noPages() error {
	if w.bbolt {
		return w.nothing()
	}
	if w.size == 0 {
		return fmt.Errorf("%w: the file is empty", ErrNotQueue)
	}
	return fmt.Errorf("%w: it is no bbolt file; was another path meant?", ErrNotQueue)
}

// checkWreckFormat checks the row that tells the version of the format.
func checkWreckFormat(key, sealed []byte) error {
	b, err := unseal(key, sealed, 4)
	if err != nil || !bytes.Equal(key, keyFormat) {
		return errors.Join(pawl.ErrCorrupt, err)
	}
	switch version := binary.BigEndian.Uint32(b); {
	case version > formatVersion:
		return fmt.Errorf("%w: format %d, this build salvages format %d; use the newer build", pawl.ErrNewerFormat, version, formatVersion)
	case version < formatVersion:
		return fmt.Errorf("%w: format %d, and only format %d can be salvaged; restore a backup where it cannot be opened", ErrOlderFormat, version, formatVersion)
	}
	return nil
}
