package pages

import (
	"context"
	"encoding/binary"
)

// freelist checks the list of free pages after all used pages were reached. Its page numbers
// must be ascending, within the file, and unused.
func (v *visitor) freelist() error {
	m := v.meta
	if !m.HasFreelist() {
		return nil
	}
	if m.Freelist < 2 || m.Freelist >= m.Pages {
		return damage(m.Page, "its list of free pages is at page %d; the file has pages 2 to %d", m.Freelist, m.Pages-1)
	}
	h, err := v.header(m.Freelist)
	switch {
	case err != nil:
		return err
	case h.id != m.Freelist:
		return damage(m.Freelist, "its header names page %d", h.id)
	case h.flags != flagFreelist:
		return damage(m.Freelist, "it is not a list of free pages: its flags are %#x", h.flags)
	case uint64(h.overflow) >= m.Pages-m.Freelist:
		return damage(m.Freelist, "its %d overflow pages end after the file", h.overflow)
	}
	if twice, ok := v.reached.addRun(m.Freelist, h.overflow); !ok {
		return damage(m.Freelist, "page %d of the list of free pages is in use", twice)
	}
	at := int64(m.Freelist)*int64(m.PageSize) + pageHeader
	room := ((1+uint64(h.overflow))*uint64(m.PageSize) - pageHeader) / 8
	count := uint64(h.count)
	if h.count == 0xFFFF { // 0xFFFF or more: the count is the first entry
		b, err := v.read(at, 8)
		if err != nil {
			return err
		}
		count = binary.NativeEndian.Uint64(b)
		at, room = at+8, room-1
	}
	if count > room {
		return damage(m.Freelist, "its list of %d free pages does not fit", count)
	}
	return v.freePages(at, count)
}

// freePages checks the entries of the list.
func (v *visitor) freePages(at int64, count uint64) error {
	for last := uint64(1); count > 0; {
		if v.ctx.Err() != nil {
			return context.Cause(v.ctx)
		}
		n := min(count, 4096)
		b, err := v.read(at, int(8*n))
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[8:] {
			id := binary.NativeEndian.Uint64(b)
			switch {
			case id <= last:
				return damage(v.meta.Freelist, "its list of free pages has page %d after page %d", id, last)
			case id >= v.meta.Pages:
				return damage(v.meta.Freelist, "its list of free pages has page %d; the file ends with page %d", id, v.meta.Pages-1)
			case !v.reached.add(id):
				return damage(v.meta.Freelist, "its list of free pages has page %d, which is in use", id)
			}
			last = id
		}
		at, count = at+int64(8*n), count-n
	}
	return nil
}

// listDamage is a damage of the list of free pages only.
type listDamage struct{ error }

func (d listDamage) Unwrap() []error { return []error{d.error, ErrFreelist} }
