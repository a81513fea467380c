package pages

import (
	"errors"
	"fmt"
	"io"
)

// reader reads a file through a window, which grows while reads are sequential. It is for one
// goroutine.
type reader struct {
	f    io.ReaderAt
	meta Meta

	window []byte
	at     int64 // offset of the window
	step   int   // size of the last read

	small [pageHeader]byte // a header outside of the window
	table []byte           // the elements of a page with overflow
	last  []byte           // the previous key of that page
}

// maxStep is the maximum size of the window in bytes, unless one read needs more.
const maxStep = 256 << 10

// read returns n bytes at off, which must end within the file. They are valid until the next
// read.
func (r *reader) read(off int64, n int) ([]byte, error) {
	end := r.at + int64(len(r.window))
	if off >= r.at && off+int64(n) <= end {
		return r.window[off-r.at:][:n], nil
	}
	if r.step > 0 && off >= end && off <= end+int64(r.step) {
		r.step = min(2*r.step, maxStep)
	} else {
		r.step = int(r.meta.PageSize)
	}
	size := int(min(int64(max(n, r.step)), r.meta.Bytes()-off))
	if cap(r.window) < size {
		r.window = make([]byte, size, max(size, 2*cap(r.window)))
	}
	r.window, r.at = r.window[:size], off
	err := r.readAt(r.window, off)
	if err != nil && size > n { // the unreadable part may be beyond the requested bytes
		r.window = r.window[:n]
		err = r.readAt(r.window, off)
	}
	if err != nil {
		r.window = r.window[:0]
		return nil, err
	}
	return r.window[:n], nil
}

// readAt fills b from offset off.
func (r *reader) readAt(b []byte, off int64) error {
	n, err := r.f.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the file ends at %d bytes, within page %d", ErrDamaged, off+int64(n), off/int64(r.meta.PageSize))
	}
	return fmt.Errorf("read page %d: %w", off/int64(r.meta.PageSize), err)
}

// header reads only the header of a page.
func (r *reader) header(id uint64) (header, error) {
	off := int64(id) * int64(r.meta.PageSize)
	if off >= r.at && off+pageHeader <= r.at+int64(len(r.window)) {
		return parseHeader(r.window[off-r.at:]), nil
	}
	err := r.readAt(r.small[:], off)
	return parseHeader(r.small[:]), err
}

// page reads a page that parent refers to, and checks its header: ID, kind and length.
func (r *reader) page(id, parent uint64) (p page, err error) {
	if id < 2 || id >= r.meta.Pages {
		return p, damage(parent, "it refers to page %d; the file has pages 2 to %d", id, r.meta.Pages-1)
	}
	p.at = int64(id) * int64(r.meta.PageSize)
	if _, err := r.read(p.at, int(r.meta.PageSize)); err != nil { // the whole page is needed next
		return p, err
	}
	if p.header, err = r.header(id); err != nil {
		return p, err
	}
	p.size = (1 + int64(p.overflow)) * int64(r.meta.PageSize)
	switch {
	case p.id != id:
		return p, damage(id, "its header names page %d", p.id)
	case p.flags != flagBranch && p.flags != flagLeaf:
		return p, damage(id, "it is neither a branch nor a leaf: its flags are %#x", p.flags)
	case uint64(p.overflow) >= r.meta.Pages-id:
		return p, damage(id, "its %d overflow pages end after the file", p.overflow)
	case p.tableEnd() > p.size:
		return p, damage(id, "its %d elements do not fit", p.count)
	case p.isBranch() && p.count < 2:
		return p, damage(id, "it is a branch with %d elements; 2 is the minimum", p.count)
	case p.isBranch() && p.size > max(int64(r.meta.PageSize), maxBranch):
		return p, damage(id, "it is a branch of %d bytes; bbolt would have split it", p.size)
	}
	return p, nil
}

// maxBranch is more than the size of any branch page in bytes: bbolt splits branches larger than
// a page unless they have at most four keys.
const maxBranch = 8 * maxKey
