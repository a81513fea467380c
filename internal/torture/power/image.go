package power

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/gopawl/pawl/internal/torture/trace"
)

// A mode says what a power cut spares of what was not durable.
type mode int

const (
	kept    mode = iota // all of it
	lost                // nothing
	pages               // some pages of 4 KiB
	sectors             // some sectors of 512 bytes
	torn                // the begin of one write, with all before it and nothing after it
	modes
)

func (m mode) String() string { return [...]string{"kept", "lost", "pages", "sectors", "torn"}[m] }

// image is a folder after a power cut.
type image struct {
	mode  mode
	names map[string]*content
}

// content is what is in a file.
type content struct {
	data []byte
	size int64 // behind the data are zeros
}

// image makes what a mode leaves of the disk. Names may be lost in every mode but kept, and are
// in mode lost.
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

// settled reports whether nothing can be lost: every mode has the same image.
func (d *disk) settled() bool {
	for _, f := range d.files {
		if len(f.pending) > 0 {
			return false
		}
	}
	return len(d.renamed) == 0
}

// spared draws what a power cut spares.
type spared struct {
	mode mode
	rand *rand.Rand
	odds float64 // of a page, a sector, a size or a name to be lost
	torn int     // how many writes there are before the one that is torn
}

func (s *spared) loses() bool { return s.rand.Float64() < s.odds }

// names keeps some of the changes of names. What happened to one name happened in order, so
// when a change is lost all later ones of the same name are.
func (s *spared) names(d *disk) map[string]int {
	names := maps.Clone(d.names)
	gone := make(map[string]bool)
	for _, c := range d.renamed {
		touched := []string{c.Name}
		switch c.Kind {
		case trace.Link:
			touched = []string{c.To}
		case trace.Rename:
			touched = []string{c.Name, c.To}
		}
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
	gone := make(map[int64]bool) // blocks whose next write was lost: those behind it were not either
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

// write keeps what the mode spares of a write. What is durable of it by now, since its page
// was written again, stays as it is.
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

// sum tells images of one moment apart.
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

// writeTo puts the content into a file, which keeps its pages in memory from one image to
// the next.
func (c *content) writeTo(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(int64(len(c.data))); err != nil { // what is behind must be zeros
		return err
	}
	if _, err := f.WriteAt(c.data, 0); err != nil {
		return err
	}
	return f.Truncate(c.size)
}
