package hostile

// Forgeries by an attacker who knows bbolt's format: pages with a valid form and wrong
// content.

// metaField sets a field of a meta page, under a right checksum.
func (h *hostile) metaField() {
	value, field := h.number(), []int{
		metaMagic, metaVersion, metaPageSize, metaFlags, metaRoot, metaSequence, metaFreelist, metaHighMark, metaTxid,
	}[h.rand.IntN(9)]
	if field == metaPageSize && h.rand.IntN(2) == 0 {
		value = 1 << h.rand.IntN(32)
	}
	for _, id := range h.metas() {
		p := h.page(id)
		switch {
		case p == nil:
			continue
		case field < metaRoot:
			native.PutUint32(p[field:], uint32(value))
		default:
			native.PutUint64(p[field:], value)
		}
		sumMeta(p)
		h.say("%#x at byte %d of page %d", value, field, id)
	}
}

// in changes the header of a page of a tree, or sometimes of another page.
func (h *hostile) in(change func(p []byte, n node)) {
	n := h.node()
	if h.rand.IntN(8) == 0 {
		n.page = h.rand.IntN(h.pages)
	}
	if p := h.page(n.page); p != nil {
		change(p, n)
		h.say("of page %d", n.page)
	}
}

func (h *hostile) pageNumber() {
	h.in(func(p []byte, n node) {
		value := h.target(n)
		native.PutUint64(p, value)
		h.say("%d", value)
	})
}

func (h *hostile) pageFlags() {
	h.in(func(p []byte, _ node) {
		flags := []uint16{0, 1, 2, 3, 4, 0x10, 0x12, 0x8002, 0xffff, uint16(h.rand.Uint32())}[h.rand.IntN(10)]
		native.PutUint16(p[atFlags:], flags)
		h.say("%#x", flags)
	})
}

func (h *hostile) count() {
	h.in(func(p []byte, n node) {
		count := uint16(h.number())
		if h.rand.IntN(2) == 0 {
			count = uint16(n.count + h.rand.IntN(5) - 2)
		}
		native.PutUint16(p[atCount:], count)
		h.say("%d in place of %d", count, n.count)
	})
}

func (h *hostile) overflow() {
	h.in(func(p []byte, n node) {
		overflow := uint32(h.number())
		if h.rand.IntN(2) == 0 {
			overflow = uint32(h.rand.IntN(4))
		}
		native.PutUint32(p[atOverflow:], overflow)
		h.say("%d", overflow)
	})
}

// pointer makes a branch page refer to another child.
func (h *hostile) pointer() {
	n := h.branch()
	if n.flags != flagBranch {
		h.bucketRoot()
		return
	}
	at := n.page*h.pageSize + headerWidth + h.rand.IntN(n.count)*elementWidth + 8
	if h.within(at, 8) {
		value := h.target(n)
		native.PutUint64(h.file[at:], value)
		h.say("from page %d to %d", n.page, value)
	}
}

// bucketRoot makes a bucket refer to another root page, or claim to be inline.
func (h *hostile) bucketRoot() {
	at := h.roots[h.rand.IntN(len(h.roots))]
	if h.within(at, 8) {
		value := h.target(h.node())
		native.PutUint64(h.file[at:], value)
		h.say("at byte %d to page %d", at, value)
	}
}

// element changes a field of an element: the position or the length of its key or value.
func (h *hostile) element() {
	n, field, width := h.node(), h.rand.IntN(4), 4
	if n.count == 0 {
		return
	}
	i := h.rand.IntN(n.count)
	at := n.page*h.pageSize + headerWidth + i*elementWidth + field*width
	if !h.within(at, width) {
		return
	}
	value := uint32(h.number())
	switch h.rand.IntN(3) {
	case 0:
		value = native.Uint32(h.file[at:]) + uint32(h.rand.IntN(9)) - 4
	case 1:
		value = uint32(h.rand.IntN(h.pageSize))
	}
	native.PutUint32(h.file[at:], value)
	h.say("%d of page %d, field %d: %d", i, n.page, field, value)
}

// order exchanges two elements, or their keys and values.
func (h *hostile) order() {
	n := h.node()
	if n.count < 2 {
		return
	}
	i, k := h.rand.IntN(n.count), h.rand.IntN(n.count)
	a, b := n.page*h.pageSize+headerWidth+i*elementWidth, n.page*h.pageSize+headerWidth+k*elementWidth
	if !h.within(a, elementWidth) || !h.within(b, elementWidth) {
		return
	}
	x, y := h.file[a:a+elementWidth], h.file[b:b+elementWidth]
	for j := range x {
		x[j], y[j] = y[j], x[j]
	}
	h.say("elements %d and %d of page %d", i, k, n.page)
	if h.rand.IntN(2) == 0 { // positions count from the element itself
		pos := 4
		if n.flags == flagBranch {
			pos = 0
		}
		native.PutUint32(x[pos:], native.Uint32(x[pos:])+uint32(b-a))
		native.PutUint32(y[pos:], native.Uint32(y[pos:])-uint32(b-a))
		h.say("with their keys")
	}
}

// key changes a key in place.
func (h *hostile) key() {
	e := h.rows[h.rand.IntN(len(h.rows))]
	if !h.within(e.key, e.end-e.key) || e.value == e.key {
		return
	}
	at := e.key + h.rand.IntN(e.value-e.key)
	h.file[at] = byte(h.rand.Uint32())
	h.say("byte %d of %s", at, e.bucket)
	if !e.holdsBucket && h.rand.IntN(2) == 0 {
		h.forged = true
		sealRow(e.bucket, h.file[e.key:e.value], h.file[e.value:e.end])
		h.say("sealed")
	}
}

// bucketFlag flips the flag that an element is a bucket.
func (h *hostile) bucketFlag() {
	e := h.rows[h.rand.IntN(len(h.rows))]
	if !h.within(e.at, 4) {
		return
	}
	flags := native.Uint32(h.file[e.at:]) ^ 1
	native.PutUint32(h.file[e.at:], flags)
	h.say("of a row of %s", e.bucket)
	if flags == 1 && e.end-e.value >= 8 && h.within(e.value, 8) {
		native.PutUint64(h.file[e.value:], h.target(h.node()))
		h.say("with a root")
	}
}

// inlineBucket damages an inline bucket.
func (h *hostile) inlineBucket() {
	at := h.roots[h.rand.IntN(len(h.roots))]
	if !h.within(at, 16+headerWidth+elementWidth) {
		return
	}
	page := h.file[at+16:]
	switch h.rand.IntN(5) {
	case 0:
		native.PutUint64(h.file[at:], 0) // its own page, although it must not have one
	case 1:
		native.PutUint16(page[atCount:], uint16(h.number()))
	case 2:
		native.PutUint16(page[atFlags:], uint16(h.number()))
	case 3:
		native.PutUint32(page[atOverflow:], uint32(h.number()))
	case 4:
		native.PutUint32(page[headerWidth+4*h.rand.IntN(4):], uint32(h.number()))
	}
	h.say("at byte %d", at)
}
