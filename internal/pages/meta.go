package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Meta is what a meta page says about its file. bbolt writes two of them in turn, and the
// one of the later transaction is in force.
type Meta struct {
	Page     uint64 // where it is: 0 or 1
	PageSize uint32 // in bytes
	Root     uint64 // the page where the tree of the top-level buckets begins
	Freelist uint64 // the page where the list of free pages begins; see HasFreelist
	Pages    uint64 // the high-water mark: how many pages are, or were, in use
	TxID     uint64 // the transaction that wrote it
}

// noFreelist stands in a meta page for a list of free pages that was not written.
const noFreelist = 1<<64 - 1

// HasFreelist reports whether the file has a list of its free pages. Without one bbolt
// walks the whole file when it opens it to write.
func (m Meta) HasFreelist() bool { return m.Freelist != noFreelist }

// Bytes is how long the file must be at least.
func (m Meta) Bytes() int64 { return int64(m.Pages) * int64(m.PageSize) }

// The layout of a meta page: a page header of 16 bytes, then these fields in the byte
// order of the machine.
const (
	metaAt       = pageHeader
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	metaPageSize = metaAt + 8
	metaRoot     = metaAt + 16
	metaFreelist = metaAt + 32
	metaPages    = metaAt + 40
	metaTxid     = metaAt + 48
	metaSum      = metaAt + 56
	metaEnd      = metaAt + 64

	// The page sizes that bbolt looks for.
	minPageSize = 1 << 10
	maxPageSize = 1 << 24

	// A file of more bytes than this is none that anybody has.
	maxFile = 1 << 50
)

// Metas returns the sound meta pages of a file, the one in force first: one or two. The
// second lies one page behind the first. Only where the first is damaged is it looked for,
// under every page size in the order in which bbolt does: elsewhere a payload may look like
// a meta page.
//
// Errors: [ErrForeign], [ErrDamaged], and those of f. With an ErrDamaged may come the one
// that is sound: a meta page whose checksum is right and whose numbers cannot be is one that
// bbolt would go by.
func Metas(f io.ReaderAt) ([]Meta, error) {
	first, state, err := readMeta(f, 0, 0)
	switch {
	case err != nil:
		return nil, err
	case state == metaSound:
		return besideFirst(f, first)
	case state == metaImpossible:
		err = first.impossible()
	}
	torn := state == metaTorn
	for size := uint32(minPageSize); size <= maxPageSize; size *= 2 {
		second, state, readErr := readMeta(f, 1, int64(size))
		switch {
		case readErr != nil:
			return nil, errors.Join(err, readErr)
		case state == metaTorn:
			torn = true
		case state == metaImpossible && err == nil:
			return nil, second.impossible()
		case state == metaSound && second.PageSize != size && err == nil:
			return nil, damage(1, "it says that pages have %d bytes, and lies at %d", second.PageSize, size)
		case state == metaSound && second.PageSize == size:
			return []Meta{second}, err
		}
	}
	switch {
	case err != nil:
		return nil, err
	case torn:
		return nil, fmt.Errorf("%w: both meta pages of the file are damaged", ErrDamaged)
	}
	return nil, ErrForeign
}

// besideFirst returns the first meta page and the second, if that is sound.
func besideFirst(f io.ReaderAt, first Meta) ([]Meta, error) {
	second, state, err := readMeta(f, 1, int64(first.PageSize))
	switch {
	case err != nil:
		return nil, err
	case state == metaImpossible:
		return []Meta{first}, second.impossible()
	case state != metaSound:
		return []Meta{first}, nil
	case second.PageSize != first.PageSize:
		return []Meta{first}, damage(1, "it says that pages have %d bytes, page 0 says %d", second.PageSize, first.PageSize)
	case second.TxID > first.TxID:
		return []Meta{second, first}, nil
	}
	return []Meta{first, second}, nil
}

// Newest returns the meta page that is in force. Its errors are those of [Metas]. Where both
// meta pages are sound it allocates nothing: whoever watches an open file asks often.
func Newest(f io.ReaderAt) (Meta, error) {
	if first, state, err := readMeta(f, 0, 0); err == nil && state == metaSound {
		second, state, err := readMeta(f, 1, int64(first.PageSize))
		if err == nil && state == metaSound && second.PageSize == first.PageSize {
			if second.TxID > first.TxID {
				return second, nil
			}
			return first, nil
		}
	}
	metas, err := Metas(f)
	if err != nil {
		return Meta{}, err
	}
	return metas[0], nil
}

// metaState is what is found where a meta page belongs.
type metaState int

const (
	metaNone       metaState = iota // something else
	metaTorn                        // a meta page that is damaged
	metaImpossible                  // its checksum is right, and its numbers cannot be
	metaSound
)

// readMeta reads the meta page at offset.
func readMeta(f io.ReaderAt, page uint64, offset int64) (m Meta, state metaState, err error) {
	b := metaBuffers.Get().(*[metaEnd]byte)
	defer metaBuffers.Put(b)
	clear(b[:])
	if _, err := f.ReadAt(b[:], offset); err != nil && !errors.Is(err, io.EOF) {
		return m, metaNone, err
	}
	if binary.NativeEndian.Uint32(b[metaAt:]) != metaMagic {
		return m, metaNone, nil
	}
	m = Meta{
		Page:     page,
		PageSize: binary.NativeEndian.Uint32(b[metaPageSize:]),
		Root:     binary.NativeEndian.Uint64(b[metaRoot:]),
		Freelist: binary.NativeEndian.Uint64(b[metaFreelist:]),
		Pages:    binary.NativeEndian.Uint64(b[metaPages:]),
		TxID:     binary.NativeEndian.Uint64(b[metaTxid:]),
	}
	switch {
	case binary.NativeEndian.Uint32(b[metaAt+4:]) != metaVersion, binary.NativeEndian.Uint64(b[metaSum:]) != sum(b[metaAt:metaSum]):
		return m, metaTorn, nil
	case m.PageSize < minPageSize, m.PageSize > maxPageSize, m.PageSize&(m.PageSize-1) != 0, m.Pages > maxFile/uint64(m.PageSize):
		return m, metaImpossible, nil
	}
	return m, metaSound, nil
}

var metaBuffers = sync.Pool{New: func() any { return new([metaEnd]byte) }}

// sum is the checksum of a meta page: 64-bit FNV-1a.
func sum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func (m Meta) impossible() error {
	return damage(m.Page, "it says that the file has %d pages of %d bytes", m.Pages, m.PageSize)
}

// check checks what the checksum of a meta page does not cover, or cannot tell.
func (m Meta) check(f io.ReaderAt) error {
	var b [pageHeader]byte
	if _, err := f.ReadAt(b[:], int64(m.Page)*int64(m.PageSize)); err != nil {
		return fmt.Errorf("read page %d: %w", m.Page, err)
	}
	h := parseHeader(b[:])
	switch {
	case h.id != m.Page || h.flags != flagMeta:
		return damage(m.Page, "it is a meta page, and its header names page %d with flags %#x", h.id, h.flags)
	case m.TxID > maxTxID:
		return damage(m.Page, "its transaction has number %d, which leaves none for others", m.TxID)
	}
	return nil
}

// maxTxID is a number that no file has reached.
const maxTxID = 1 << 62
