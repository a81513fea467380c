package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Meta is a meta page. bbolt writes two of them alternately; the one with the later transaction
// is current.
type Meta struct {
	Page     uint64 // 0 or 1
	PageSize uint32 // bytes
	Root     uint64 // root page of the tree of top-level buckets
	Freelist uint64 // first page of the list of free pages; see HasFreelist
	Pages    uint64 // high-water mark: pages that are or were in use
	TxID     uint64 // transaction that wrote it
}

// noFreelist is the Freelist of a file whose list of free pages was not written.
const noFreelist = 1<<64 - 1

// HasFreelist reports whether the file has a list of free pages. Without one bbolt reads the
// whole file when it opens it for writing.
func (m Meta) HasFreelist() bool { return m.Freelist != noFreelist }

// Bytes returns the minimum length of the file.
func (m Meta) Bytes() int64 { return int64(m.Pages) * int64(m.PageSize) }

// The layout of a meta page: a page header of 16 bytes, then these fields in native byte order.
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

	maxFile = 1 << 50 // bytes; no real file is larger
)

// Metas returns the sound meta pages of a file, one or two, the current one first. The second is
// one page after the first. Only if the first is damaged does Metas search for the second, under
// every page size in bbolt's order, because a payload may look like a meta page.
//
// Errors: [ErrForeign], [ErrDamaged], and errors of f. With ErrDamaged, Metas also returns the
// sound page if the other one has a valid checksum and impossible numbers: bbolt would use that.
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
			return nil, damage(1, "its page size is %d bytes, but its offset is %d", second.PageSize, size)
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

// besideFirst returns the sound first meta page, and the second if it is sound too.
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
		return []Meta{first}, damage(1, "its page size is %d bytes, but that of page 0 is %d", second.PageSize, first.PageSize)
	case second.TxID > first.TxID:
		return []Meta{second, first}, nil
	}
	return []Meta{first, second}, nil
}

// Newest returns the current meta page, with the errors of [Metas]. It does not allocate if both
// pages are sound, because watchers of an open file call it often.
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

// metaState is what was found at the place of a meta page.
type metaState int

const (
	metaNone       metaState = iota // something else
	metaTorn                        // a damaged meta page
	metaImpossible                  // valid checksum, impossible numbers
	metaSound
)

// readMeta reads the meta page at an offset.
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

// sum returns the checksum of a meta page: 64-bit FNV-1a.
func sum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func (m Meta) impossible() error {
	return damage(m.Page, "it claims %d pages of %d bytes", m.Pages, m.PageSize)
}

// check checks what the checksum does not cover.
func (m Meta) check(f io.ReaderAt) error {
	var b [pageHeader]byte
	if _, err := f.ReadAt(b[:], int64(m.Page)*int64(m.PageSize)); err != nil {
		return fmt.Errorf("read page %d: %w", m.Page, err)
	}
	h := parseHeader(b[:])
	switch {
	case h.id != m.Page || h.flags != flagMeta:
		return damage(m.Page, "the header of this meta page names page %d with flags %#x", h.id, h.flags)
	case m.TxID > maxTxID:
		return damage(m.Page, "its transaction number %d is too large", m.TxID)
	}
	return nil
}

// maxTxID is a transaction number that no file reaches.
const maxTxID = 1 << 62
