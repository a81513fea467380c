package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/pages"
)

// damagedFile is a damaged file that is open for reading.
type damagedFile struct {
	*os.File
	size  int64
	metas []pages.Meta // sound meta pages; the first is used to read the file
	older bool         // the first is not the newest

	bbolt     bool // a meta page says that bbolt wrote the file
	ours      bool // a tree has the bucket of a queue, which may be damaged
	queueless bool // the tree leads to no queue
	foreign   bool // and the tree is sound: the file is another program's, or a torn copy

	progress *progress // nil until the copy begins
}

// ReadAt reads from the file and counts the bytes.
func (w *damagedFile) ReadAt(b []byte, off int64) (n int, err error) {
	n, err = w.File.ReadAt(b, off)
	w.progress.add(int64(n))
	return n, err
}

func openDamagedFile(ctx context.Context, path string) (w *damagedFile, err error) {
	f, err := dbfile.OpenDamaged(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	w = &damagedFile{File: f, size: info.Size()}
	w.metas, _ = pages.Metas(f) // if there is none, all pages are searched
	w.bbolt = len(w.metas) > 0
	return w, w.choose(ctx)
}

// choose moves the meta page used to read the file to the front: the newest one that leads to
// the jobs, or else to any bucket of a queue.
func (w *damagedFile) choose(ctx context.Context) error {
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
		// In a plain copy of a file that was being written, the page of the root may have been
		// reused. What the tree reaches is not lost, because all pages are searched.
		w.metas = nil
	}
	return nil
}

// survey rates what a meta page leads to: 2 for the jobs of a queue, 1 for another part of a
// queue. It records a newest tree that is sound and leads to no queue.
func (w *damagedFile) survey(ctx context.Context, m pages.Meta) (found int, err error) {
	sound, first := true, m == w.metas[0]
	_, err = pages.Walk(ctx, w, w.size, m, pages.Visitor{
		Bucket: func(path [][]byte, _ uint64) error {
			if !bytes.Equal(path[0], bucketRoot) {
				return pages.ErrSkipBucket
			}
			if w.ours = true; len(path) == 1 {
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

// nothing returns the error for a file without any part of a queue.
func (w *damagedFile) nothing() error {
	if w.foreign {
		return errForeign
	}
	return fmt.Errorf("%w: nothing of a queue was found in it; restore a backup. %s", pawl.ErrCorrupt, dbfile.PlainCopy)
}

// noPages returns the error for a file without any bbolt page.
func (w *damagedFile) noPages() error {
	if w.bbolt {
		return w.nothing()
	}
	if w.size == 0 {
		return fmt.Errorf("%w: the file is empty", ErrNotQueue)
	}
	return fmt.Errorf("%w: it is no bbolt file; was another path meant?", ErrNotQueue)
}

// checkDamagedFormat checks the row of the format version.
func checkDamagedFormat(key, sealed []byte) error {
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
