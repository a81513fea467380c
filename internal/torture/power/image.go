package power

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/gopawl/pawl/internal/torture/trace"
)

// A mode says which changes that are not durable survive a power cut.
type mode int

const (
	kept    mode = iota // all changes
	lost                // none
	pages               // some pages of 4 KiB
	sectors             // some sectors of 512 bytes
	torn                // the start of one write, and all writes before it
	modes
)

func (m mode) String() string { return [...]string{"kept", "lost", "pages", "sectors", "torn"}[m] }

// image is a folder after a power cut.
type image struct {
	mode  mode
	names map[string]*content
}

// content is the content of a file.
type content struct {
	data []byte
	size int64 // zeros follow the data
}

// image returns the disk after a power cut in a mode. Every mode except kept may lose names,
// and mode lost loses all.
func (d *disk) image(m mode, r *rand.Rand) image {
	s := spared{mode: m, rand: r, odds: []float64{0.1, 0.5, 0.9}[r.IntN(3)]}
	if m == torn {
		s.torn = r.IntN(max(d.pendingWrites(), 1))
	}
	files := make(map[int]*content)
	for _, number := range slices.Sorted(maps.Keys(d.files)) {
		files[number] = s.file(d.files[number])
	}
	img := image{m, make(map[string]*content)}
	for name, number := range s.names(d) {
		img.names[name] = files[number]
	}
	return img
}

func (d *disk) pendingWrites() (n int) {
	for _, f := range d.files {
		for _, c := range f.pending {
			if c.Kind == trace.Write {
				n++
			}
		}
	}
	return n
}

// settled reports whether a power cut loses nothing: every mode has the same image.
func (d *disk) settled() bool {
	for _, f := range d.files {
		if len(f.pending) > 0 {
			return false
		}
	}
	return len(d.renamed) == 0
}

// spared draws the changes that survive a power cut.
type spared struct {
	mode mode
	rand *rand.Rand
	odds float64 // odds of losing a page, a sector, a size or a name
	torn int     // the number of writes before the torn one
}

func (s *spared) loses() bool { return s.rand.Float64() < s.odds }

// names keeps some of the changes of names. The changes of one name are ordered, so the loss
// of a change loses all later changes of the same name.
func (s *spared) names(d *disk) map[string]int {
	names := maps.Clone(d.names)
	gone := make(map[string]bool)
	for _, c := range d.renamed {
		touched := c.names()
		if slices.ContainsFunc(touched, func(name string) bool { return gone[name] }) || s.mode == lost || s.mode != kept && s.loses() {
			for _, name := range touched {
				gone[name] = true
			}
			continue
		}
		trace.Rewrite(names, c.Op)
	}
	return names
}

// file keeps some of the changes of a file.
func (s *spared) file(from *file) *content {
	if len(from.pending) == 0 || s.mode == lost {
		return &content{from.data, from.size}
	}
	f := &file{data: slices.Clone(from.data), size: from.size}
	gone := make(map[int64]bool) // blocks that lost a write, and so all later ones
	sizeGone := false
	for _, c := range from.pending {
		if c.Kind == trace.Truncate {
			if sizeGone = sizeGone || s.mode != kept && s.loses(); !sizeGone {
				f.truncate(c)
			}
			continue
		}
		s.write(f, c, gone)
	}
	return &content{f.data, f.size}
}

// write keeps the part of a write that survives in the mode. Parts that became durable by a
// later write of the same page stay unchanged.
func (s *spared) write(f *file, c *change, gone map[int64]bool) {
	size, spared := int64(pageSize), int64(len(c.Data))
	switch s.mode {
	case sectors:
		size = sector
	case torn:
		if s.torn--; s.torn < -1 {
			return
		}
		if s.torn == -1 {
			spared = s.rand.Int64N(spared + 1)
		}
	}
	c.blocks(size, func(at int64, part []byte) {
		if c.rewritten[at/pageSize] {
			return
		}
		if s.mode == pages || s.mode == sectors {
			block := at / size
			if gone[block] = gone[block] || s.loses(); gone[block] {
				return
			}
		}
		if left := c.At + spared - at; left > 0 {
			f.put(at, part[:min(left, int64(len(part)))])
		}
	})
}

var hashSeed = maphash.MakeSeed()

// sum distinguishes the images of one moment.
func (img *image) sum() uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, name := range slices.Sorted(maps.Keys(img.names)) {
		c := img.names[name]
		h.WriteString(name)
		h.WriteByte(0)
		maphash.WriteComparable(&h, c.size)
		h.Write(c.data)
	}
	return h.Sum64()
}

// writeTo writes the content into a file. The file keeps its pages in memory from one image
// to the next.
func (c *content) writeTo(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(int64(len(c.data))); err != nil { // zeros must follow
		return err
	}
	if _, err := f.WriteAt(c.data, 0); err != nil {
		return err
	}
	return f.Truncate(c.size)
}
