package hostile

import "slices"

// freeList forges the list of free pages.
func (h *hostile) freeList() {
	id := h.freelist
	if id == 0 { // make a list if there was none
		id = h.pages - 1
		if len(h.free) > 0 {
			id = h.free[h.rand.IntN(len(h.free))]
		}
		for _, meta := range []int{0, 1} {
			if p := h.page(meta); p != nil {
				native.PutUint64(p[metaFreelist:], uint64(id))
				sumMeta(p)
			}
		}
		h.say("none before,")
	}
	p := h.page(id)
	if p == nil {
		return
	}
	clear(p)
	native.PutUint64(p, uint64(id))
	native.PutUint16(p[atFlags:], flagFreelist)
	ids := h.freeIDs()
	count, at := len(ids), headerWidth
	if h.rand.IntN(4) == 0 { // the count is the first element
		native.PutUint16(p[atCount:], 0xFFFF)
		native.PutUint64(p[at:], h.countOf(count))
		at += 8
	} else {
		native.PutUint16(p[atCount:], uint16(h.countOf(count)))
	}
	for _, id := range ids {
		if at+8 <= len(p) {
			native.PutUint64(p[at:], id)
			at += 8
		}
	}
	h.say("at page %d of %d pages", id, count)
}

// countOf usually returns the right number.
func (h *hostile) countOf(n int) uint64 {
	if h.rand.IntN(4) == 0 {
		return h.number()
	}
	return uint64(n)
}

// freeIDs returns the pages for a forged list.
func (h *hostile) freeIDs() (ids []uint64) {
	for _, id := range h.free {
		ids = append(ids, uint64(id))
	}
	for range 1 + h.rand.IntN(4) {
		lie := uint64(h.node().page)
		switch h.rand.IntN(5) {
		case 0:
			lie = h.number()
		case 1:
			lie = uint64(h.freelist)
		case 2:
			if len(ids) > 0 { // one ID twice
				lie = ids[h.rand.IntN(len(ids))]
			}
		}
		ids = append(ids, lie)
	}
	if h.rand.IntN(4) > 0 {
		slices.Sort(ids)
	}
	return ids
}
