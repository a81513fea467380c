package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"

	"github.com/gopawl/pawl"
)

// inspectPath refuses what is no file, without opening it: a pipe waits for its
// other end.
func inspectPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%w: it is a folder; name a file in it", ErrNotQueue)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file", ErrNotQueue)
	}
	return nil
}

// inspectFile looks at a file by plain reads before bbolt maps it: a map of a file
// that is too short faults, and bbolt trusts what a valid meta page says. It returns the
// newer meta page.
//
// Nobody has the lock yet, so a queue may be at work on the file. It makes the file
// grow before it writes a meta page that says so, hence the order here.
func inspectFile(f interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}) (meta, error) {
	best, metaErr := readMeta(f)
	info, err := f.Stat()
	switch {
	case err != nil:
		return best, err
	case info.Size() == 0:
		return best, fmt.Errorf("%w: the file is empty; remove it to have it created anew", ErrNotQueue)
	case metaErr != nil:
		return best, metaErr
	}
	if need := best.pages * uint64(best.pageSize); need > uint64(info.Size()) {
		return best, fmt.Errorf("%w: the file is truncated: it has %d bytes of %d; restore a backup", pawl.ErrCorrupt, info.Size(), need)
	}
	return best, nil
}

// meta is what a bbolt meta page says about its file.
type meta struct {
	pageSize uint32
	freelist uint64 // the page where it is
	pages    uint64 // the high-water mark
	txid     uint64
}

// noFreelist stands in a meta page for a list of free pages that was not written.
const noFreelist = 1<<64 - 1

// The layout of a bbolt meta page (internal/common of bbolt 1.5.0): a page header
// of 16 bytes, then these fields in the byte order of the machine.
const (
	metaAt       = 16
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	metaPageSize = metaAt + 8
	metaFreelist = metaAt + 32
	metaPages    = metaAt + 40
	metaTxid     = metaAt + 48
	metaSum      = metaAt + 56
	metaEnd      = metaAt + 64

	// The page sizes that bbolt looks for.
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// readMeta returns the newer of the valid meta pages. The second one lies one page
// behind the first. Only where the first is damaged is it looked for, under every
// page size as bbolt does: elsewhere a payload may look like a meta page.
func readMeta(f io.ReaderAt) (meta, error) {
	best, torn, err := readMetaPage(f, 0)
	if err != nil {
		return meta{}, err
	}
	first := best
	for size := uint32(minPageSize); size <= maxPageSize; size *= 2 {
		if first.pageSize != 0 && size != first.pageSize {
			continue
		}
		second, damaged, err := readMetaPage(f, int64(size))
		switch {
		case err != nil:
			return meta{}, err
		case damaged:
			torn = true
		case second.pageSize == size && (best.pageSize == 0 || second.txid > best.txid):
			best = second
		case second.pageSize != size && second.pageSize != 0 && first.pageSize != 0:
			return meta{}, fmt.Errorf("%w: the meta pages of the file disagree; restore a backup", pawl.ErrCorrupt)
		}
	}
	switch {
	case best.pageSize != 0:
		return best, nil
	case torn:
		return meta{}, fmt.Errorf("%w: both meta pages of the file are damaged; restore a backup", pawl.ErrCorrupt)
	}
	return meta{}, fmt.Errorf("%w: it is no bbolt file; was another path meant?", ErrNotQueue)
}

// readMetaPage reads the meta page at offset. It returns the zero meta where there
// is none, and damaged where there was one.
func readMetaPage(f io.ReaderAt, offset int64) (m meta, damaged bool, err error) {
	var page [metaEnd]byte
	if _, err := f.ReadAt(page[:], offset); err != nil && !errors.Is(err, io.EOF) {
		return meta{}, false, err
	}
	if binary.NativeEndian.Uint32(page[metaAt:]) != metaMagic {
		return meta{}, false, nil
	}
	h := fnv.New64a()
	h.Write(page[metaAt:metaSum])
	m = meta{
		pageSize: binary.NativeEndian.Uint32(page[metaPageSize:]),
		freelist: binary.NativeEndian.Uint64(page[metaFreelist:]),
		pages:    binary.NativeEndian.Uint64(page[metaPages:]),
		txid:     binary.NativeEndian.Uint64(page[metaTxid:]),
	}
	if binary.NativeEndian.Uint32(page[metaAt+4:]) != metaVersion ||
		binary.NativeEndian.Uint64(page[metaSum:]) != h.Sum64() ||
		m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 ||
		m.pages > 1<<50/uint64(m.pageSize) {
		return meta{}, true, nil
	}
	return m, false, nil
}
