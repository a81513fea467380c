package hostile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// hostile is a hostile file that is being made.
type hostile struct {
	*base
	all  []*base // for parts of other files
	rand *rand.Rand

	scratch string // a path for work on it
	file    []byte
	size    int64  // size of the file, if it is longer
	how     string // the mutations
	forged  bool   // with corrected checksums, so wrong data may look sound

	sources []*layout // the sound files that it comes from
}

// mutation is a class of damages.
type mutation struct {
	name   string
	weight int // weight relative to the others
	apply  func(h *hostile)
}

// mutations are all classes: accidents first, then forgeries by an attacker who knows the
// format.
var mutations = []mutation{
	{"flip", 12, (*hostile).flip},
	{"flip in a header", 6, (*hostile).flipHeader},
	{"flip in a meta page", 4, (*hostile).flipMeta},
	{"zeroes", 3, (*hostile).zeroPages},
	{"noise", 3, (*hostile).noise},
	{"truncated", 3, (*hostile).truncate},
	{"grown", 2, (*hostile).grow},
	{"pages swapped", 3, (*hostile).swapPages},
	{"a page twice", 4, (*hostile).copyPage},
	{"two files", 4, (*hostile).splice},
	{"torn", 2, (*hostile).tear},
	{"another file", 1, (*hostile).otherFile},

	{"meta field", 6, (*hostile).metaField},
	{"page number", 5, (*hostile).pageNumber},
	{"page flags", 4, (*hostile).pageFlags},
	{"count", 5, (*hostile).count},
	{"overflow", 5, (*hostile).overflow},
	{"pointer", 10, (*hostile).pointer},
	{"bucket root", 8, (*hostile).bucketRoot},
	{"element", 10, (*hostile).element},
	{"order of keys", 5, (*hostile).order},
	{"key", 4, (*hostile).key},
	{"bucket flag", 4, (*hostile).bucketFlag},
	{"inline bucket", 6, (*hostile).inlineBucket},
	{"free list", 10, (*hostile).freeList},
	{"row", 10, (*hostile).row},
	{"record", 6, (*hostile).record},
	{"another row", 8, (*hostile).otherRow},
	{"format version", 1, (*hostile).formatVersion},
}

// forge draws a base and mutations from a seed. Scratch is a path for temporary files.
func forge(all []*base, seed uint64, scratch string) *hostile {
	h := blank(all, seed, scratch)
	times := 1
	for h.rand.IntN(5) == 0 && times < 4 {
		times++
	}
	for range times {
		h.draw().apply(h)
	}
	if h.rand.IntN(largeShare) == 0 {
		h.size = largeSize
		h.say("as a file of %d MiB", largeSize>>20)
	}
	return h
}

// One file in largeShare gets largeSize bytes, with a hole at its end. It tests limits on the
// size of a checked file.
const (
	largeShare = 64
	largeSize  = 100 << 20
)

// blank returns a file without mutations.
func blank(all []*base, seed uint64, scratch string) *hostile {
	r := rand.New(rand.NewPCG(seed, 1))
	b := all[r.IntN(len(all))]
	return &hostile{base: b, all: all, rand: r, scratch: scratch, file: bytes.Clone(b.whole), sources: []*layout{b.layout}}
}

func (h *hostile) draw() mutation {
	m := harness.Pick(h.rand, mutations, func(m mutation) int { return m.weight })
	h.say("%s:", m.name)
	return m
}

// say adds to the description of the mutations.
func (h *hostile) say(format string, args ...any) {
	h.how = strings.TrimPrefix(h.how+" "+fmt.Sprintf(format, args...), " ")
}

// write makes the file.
func (h *hostile) write(path string) error {
	if err := os.WriteFile(path, h.file, 0o600); err != nil {
		return err
	}
	if h.size > int64(len(h.file)) {
		return os.Truncate(path, h.size)
	}
	return nil
}

// within reports whether the current file has width bytes at an offset.
func (h *hostile) within(at, width int) bool { return at >= 0 && at+width <= len(h.file) }

// page returns a page of the current file, nil if it is gone.
func (h *hostile) page(id int) []byte {
	if at := id * h.pageSize; h.within(at, h.pageSize) {
		return h.file[at : at+h.pageSize]
	}
	return nil
}

// node draws a page of a tree.
func (h *hostile) node() node { return h.tree[h.rand.IntN(len(h.tree))] }

// branch draws a branch page, or any page if it finds none.
func (h *hostile) branch() node {
	for range 8 {
		if n := h.node(); n.flags == flagBranch {
			return n
		}
	}
	return h.node()
}

// anyRow draws an element that is no bucket.
func (h *hostile) anyRow() element {
	for {
		if e := h.rows[h.rand.IntN(len(h.rows))]; !e.holdsBucket {
			return e
		}
	}
}

// number draws a number that is likely to hurt, of up to 64 bits.
func (h *hostile) number() uint64 {
	n := []uint64{
		0, 1, 2, 3, 15, 16, 17, uint64(h.pages), uint64(h.pages) - 1, uint64(h.pages) + 1, uint64(h.pageSize), uint64(len(h.file)),
		1<<7 - 1, 1 << 7, 1<<8 - 1, 1 << 8, 1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32,
		1 << 52, 1<<52 - 1, 1 << 60, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2,
		h.rand.Uint64(), h.rand.Uint64N(1 << 20), h.rand.Uint64N(uint64(h.pages) + 2),
	}
	return n[h.rand.IntN(len(n))]
}

// target draws a page for a reference from another page.
func (h *hostile) target(from node) uint64 {
	other := h.node()
	targets := []uint64{
		uint64(from.page), uint64(from.parent), uint64(other.page), uint64(other.parent), uint64(h.freelist), 0, 1,
		uint64(h.tree[0].page), uint64(h.pages), uint64(h.pages) + h.rand.Uint64N(1<<20), h.number(),
	}
	if len(h.free) > 0 {
		targets = append(targets, uint64(h.free[h.rand.IntN(len(h.free))]))
	}
	return targets[h.rand.IntN(len(targets))]
}
