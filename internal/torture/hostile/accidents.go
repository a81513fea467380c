package hostile

import (
	"bytes"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
)

// Accidents: disks, cables, cats.

// flip flips bits anywhere.
func (h *hostile) flip() {
	for range 1 + h.rand.IntN(4)*h.rand.IntN(3) {
		if len(h.file) == 0 {
			return
		}
		h.flipBit(h.rand.IntN(len(h.file)))
	}
}

func (h *hostile) flipBit(at int) {
	bit := h.rand.IntN(8)
	h.file[at] ^= 1 << bit
	h.say("bit %d of byte %d (page %d, %d)", bit, at, at/h.pageSize, at%h.pageSize)
}

// flipHeader flips a bit in the header of a page or of an element.
func (h *hostile) flipHeader() {
	n := h.node()
	width := headerWidth
	if h.rand.IntN(2) == 0 {
		width += elementWidth * n.count
	}
	if at := n.page*h.pageSize + h.rand.IntN(width); h.within(at, 1) {
		h.flipBit(at)
	}
}

// flipMeta flips a bit in one or both meta pages, under a right checksum.
func (h *hostile) flipMeta() {
	at := metaMagic + h.rand.IntN(metaSum-metaMagic)
	bit := byte(1 << h.rand.IntN(8))
	for _, id := range h.metas() {
		if p := h.page(id); p != nil {
			p[at] ^= bit
			sumMeta(p)
			h.say("byte %d of page %d by %#x", at, id, bit)
		}
	}
}

// metas draws one or both meta pages.
func (h *hostile) metas() []int { return [][]int{{0}, {1}, {0, 1}, {0, 1}}[h.rand.IntN(4)] }

func (h *hostile) zeroPages() {
	id, n := h.rand.IntN(h.pages), 1+h.rand.IntN(3)*h.rand.IntN(3)
	for i := range n {
		if p := h.page(id + i); p != nil {
			clear(p[:len(p)>>h.rand.IntN(2)]) // or half of it, as in a torn write
		}
	}
	h.say("%d pages from %d on", n, id)
}

// noise puts random bytes, or all ones, over a part of a page.
func (h *hostile) noise() {
	p := h.page(h.rand.IntN(h.pages))
	if p == nil {
		return
	}
	from := []int{0, headerWidth, h.rand.IntN(len(p))}[h.rand.IntN(3)]
	to := from + h.rand.IntN(len(p)-from) + 1
	ones := h.rand.IntN(2) == 0
	for i := from; i < to; i++ {
		if p[i] = 0xff; !ones {
			p[i] = byte(h.rand.Uint32())
		}
	}
	h.say("bytes %d to %d of a page, ones %t", from, to, ones)
}

func (h *hostile) truncate() {
	if len(h.file) == 0 {
		return
	}
	size := h.rand.IntN(len(h.file))
	switch h.rand.IntN(3) {
	case 0:
		size = size / h.pageSize * h.pageSize
	case 1:
		size = h.rand.IntN(min(len(h.file), 3*h.pageSize))
	}
	h.file, h.size = h.file[:size], 0
	h.say("to %d bytes", size)
}

// mostGrown limits the size of a file in bytes: a reader's time and memory grow with it.
const mostGrown = 16 << 20

// grow appends bytes, and sometimes updates the meta pages.
func (h *hostile) grow() {
	size := int64(len(h.file)) + h.rand.Int64N(1<<h.rand.IntN(25))
	h.size = min(size, mostGrown)
	h.say("to %d bytes", h.size)
	if h.rand.IntN(2) == 0 {
		return
	}
	for _, id := range h.metas() {
		if p := h.page(id); p != nil {
			native.PutUint64(p[metaHighMark:], uint64(h.size/int64(h.pageSize)))
			sumMeta(p)
			h.say("which page %d knows", id)
		}
	}
}

// swapPages exchanges two pages, with or without the numbers in their headers.
func (h *hostile) swapPages() {
	a, b := h.rand.IntN(h.pages), h.node().page
	p, q := h.page(a), h.page(b)
	if p == nil || q == nil {
		return
	}
	was := bytes.Clone(p)
	copy(p, q)
	copy(q, was)
	h.say("%d and %d", a, b)
	if h.rand.IntN(2) == 0 {
		native.PutUint64(p, uint64(a))
		native.PutUint64(q, uint64(b))
		h.say("with their numbers")
	}
}

// copyPage overwrites a page with another one, like a write to the wrong place.
func (h *hostile) copyPage() {
	from, to := h.node().page, h.rand.IntN(h.pages)
	p, q := h.page(from), h.page(to)
	if p == nil || q == nil {
		return
	}
	copy(q, p)
	h.say("%d over %d", from, to)
	if h.rand.IntN(4) > 0 {
		native.PutUint64(q, uint64(to))
		h.say("with its number")
	}
}

// splice takes pages from another file.
func (h *hostile) splice() {
	other := h.all[h.rand.IntN(len(h.all))]
	h.adopt(other)
	for range 1 + h.rand.IntN(3) {
		from, to := other.tree[h.rand.IntN(len(other.tree))].page, h.node().page
		p := h.page(to)
		if p == nil {
			continue
		}
		copy(p, other.whole[from*other.pageSize:])
		h.say("page %d of a file of %d pages over %d", from, other.pages, to)
		if h.rand.IntN(4) > 0 {
			native.PutUint64(p, uint64(to))
		}
	}
}

// tear takes the end or the meta pages of another file.
func (h *hostile) tear() {
	other := h.all[h.rand.IntN(len(h.all))]
	h.adopt(other)
	if h.rand.IntN(2) == 0 {
		copy(h.file, other.whole[:2*other.pageSize])
		h.say("meta pages of a file of %d pages", other.pages)
		return
	}
	at := h.rand.IntN(min(len(h.file), len(other.whole)) + 1)
	h.file = append(h.file[:at:at], other.whole[at:]...)
	h.say("from byte %d on a file of %d pages", at, other.pages)
}

// adopt makes the jobs and runs of another file count as sound.
func (h *hostile) adopt(other *base) {
	h.sources = append(h.sources, other.layout)
	joined := *h.base
	joined.jobs = make(map[pawl.ID]*pawl.Envelope, len(h.jobs)+len(other.jobs))
	for id, e := range h.jobs {
		joined.jobs[id] = e
	}
	for id, e := range other.jobs {
		joined.jobs[id] = e
	}
	joined.stories = maps.Clone(h.stories)
	maps.Copy(joined.stories, other.stories)
	joined.runs = slices.Concat(h.runs, other.runs)
	h.base = &joined
}

// otherFile replaces the file by something that is not a queue.
func (h *hostile) otherFile() {
	others := [][]byte{
		nil, {0}, []byte("SQLite format 3\x00"), bytes.Repeat([]byte("a text\n"), 2000), {0x1f, 0x8b, 8, 0},
		h.bytes(20_000), make([]byte, 16384), bytes.Repeat([]byte{0xff}, 16384), h.whole[:h.pageSize], h.whole[h.pageSize:],
	}
	i := h.rand.IntN(len(others))
	h.file, h.size = bytes.Clone(others[i]), 0
	if h.rand.IntN(4) == 0 && len(h.file) > h.pageSize { // it begins like a queue
		copy(h.file, h.whole[:headerWidth+8])
	}
	h.say("%d", i)
}
