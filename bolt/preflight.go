package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/gopawl/pawl"
)

// inspectFile looks at a file by plain reads before bbolt maps it: a map of a file
// that is too short faults, and bbolt trusts what a valid meta page says.
func inspectFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return fmt.Errorf("%w: it is a folder; name a file in it", ErrNotQueue)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file", ErrNotQueue)
	case info.Size() == 0:
		return fmt.Errorf("%w: the file is empty; remove it to have it created anew", ErrNotQueue)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	meta, err := readMeta(f)
	if err != nil {
		return err
	}
	if need := meta.pages * uint64(meta.pageSize); need > uint64(info.Size()) {
		return fmt.Errorf("%w: the file is truncated: it has %d bytes of %d; restore a backup", pawl.ErrCorrupt, info.Size(), need)
	}
	return nil
}

// meta is what a bbolt meta page says about its file.
type meta struct {
	pageSize uint32
	pages    uint64 // the high-water mark
	txid     uint64
}

// The layout of a bbolt meta page (internal/common of bbolt 1.5.0): a page header
// of 16 bytes, then these fields in the byte order of the machine.
const (
	metaAt       = 16
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	metaPageSize = metaAt + 8
	metaPages    = metaAt + 40
	metaTxid     = metaAt + 48
	metaSum      = metaAt + 56
	metaEnd      = metaAt + 64
)

// readMeta returns the newer of the valid meta pages. The second one lies one page
// behind the first, whose size only a meta page tells: every power of two is tried
// as bbolt does.
func readMeta(f io.ReaderAt) (meta, error) {
	var best meta
	var damaged bool
	for offset := int64(0); offset <= 1<<24; offset = max(2*offset, 1024) {
		var page [metaEnd]byte
		if _, err := f.ReadAt(page[:], offset); err != nil && !errors.Is(err, io.EOF) {
			return meta{}, err
		} else if err != nil {
			break
		}
		if binary.NativeEndian.Uint32(page[metaAt:]) != metaMagic {
			continue
		}
		h := fnv.New64a()
		h.Write(page[metaAt:metaSum])
		m := meta{
			pageSize: binary.NativeEndian.Uint32(page[metaPageSize:]),
			pages:    binary.NativeEndian.Uint64(page[metaPages:]),
			txid:     binary.NativeEndian.Uint64(page[metaTxid:]),
		}
		switch {
		case binary.NativeEndian.Uint32(page[metaAt+4:]) != metaVersion,
			binary.NativeEndian.Uint64(page[metaSum:]) != h.Sum64(),
			m.pageSize < 1024, m.pageSize > 1<<24, m.pages > 1<<50/uint64(m.pageSize),
			offset != 0 && offset != int64(m.pageSize):
			damaged = true
		case best.pageSize == 0 || m.txid > best.txid:
			best = m
		}
	}
	switch {
	case best.pageSize != 0:
		return best, nil
	case damaged:
		return meta{}, fmt.Errorf("%w: both meta pages of the file are damaged; restore a backup", pawl.ErrCorrupt)
	}
	return meta{}, fmt.Errorf("%w: it is no bbolt file; was another path meant?", ErrNotQueue)
}
