package power

import (
	"maps"
	"slices"

	"github.com/gopawl/pawl/internal/torture/trace"
)

const (
	sector   = 512  // the unit of a disk's writes
	pageSize = 4096 // the unit of the kernel's cache
)

// disk is a folder with its durable changes and its other changes. It relies only on the
// promises of systems: fsync or fdatasync of a file makes its bytes durable, fsync of the
// file makes a size set by ftruncate durable, and fsync of the folder makes a name durable.
// A power cut loses or keeps each other change independently.
type disk struct {
	files   map[int]*file
	names   map[string]int // durable names
	renamed []*change      // changes of names that are not durable, in their order
	covers  map[*trace.Op][]*change
}

// file is the durable content of a file, and its other changes in order.
type file struct {
	data    []byte // data up to the last written byte; zeros follow
	size    int64
	shown   int64 // the size according to the kernel
	pending []*change
}

// change is an op that is not durable yet.
type change struct {
	*trace.Op
	ended bool
	grows bool // a truncate that makes the file longer

	// After a failed sync a change stays doubtful: the kernel shows it and does not write it
	// again, and the disk may have it or not. A later write of the same page writes the whole
	// page, which counts as rewritten.
	doubtful  bool
	rewritten map[int64]bool // by page
}

func newDisk(l *trace.Log) *disk {
	d := &disk{files: make(map[int]*file), names: maps.Clone(l.Names), covers: make(map[*trace.Op][]*change)}
	for number, content := range l.Files {
		d.files[number] = &file{data: append([]byte(nil), content...), size: int64(len(content)), shown: int64(len(content))}
	}
	return d
}

func (d *disk) file(number int) *file {
	f := d.files[number]
	if f == nil {
		f = new(file)
		d.files[number] = f
	}
	return f
}

// apply processes the next event, and reports whether it can matter for a crash.
func (d *disk) apply(e trace.Event) bool {
	switch {
	case e.Kind == trace.Say:
		return e.Begin
	case e.IsSync() && e.Begin:
		d.covers[e.Op] = d.completed(e.Op)
		return true
	case e.IsSync():
		d.sync(e.Op, d.covers[e.Op])
		delete(d.covers, e.Op)
		return true
	case !e.Begin:
		d.ended(e.Op)
		return false
	case e.Failed:
		return false
	}
	c := &change{Op: e.Op}
	f := d.file(e.File)
	switch e.Kind {
	case trace.Write:
		f.shown = max(f.shown, e.At+int64(len(e.Data)))
		f.pending = append(f.pending, c)
	case trace.Truncate:
		c.grows, f.shown = e.Size >= f.shown, e.Size
		f.pending = append(f.pending, c)
	default:
		d.renamed = append(d.renamed, c)
	}
	return true
}

func (d *disk) ended(op *trace.Op) {
	for _, list := range [][]*change{d.file(op.File).pending, d.renamed} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Op == op {
				list[i].ended = true
				return
			}
		}
	}
}

// completed returns the changes that a sync starting now has to make durable.
func (d *disk) completed(sync *trace.Op) (covered []*change) {
	list := d.renamed
	if sync.Kind != trace.SyncFolder {
		list = d.file(sync.File).pending
	}
	for _, c := range list {
		if c.ended && !c.doubtful {
			covered = append(covered, c)
		}
	}
	return covered
}

// sync makes the covered changes of an ended sync durable, or doubtful if it failed.
func (d *disk) sync(op *trace.Op, covered []*change) {
	if op.Failed {
		for _, c := range covered {
			c.doubtful = true
		}
		return
	}
	is := make(map[*change]bool, len(covered))
	for _, c := range covered {
		is[c] = true
	}
	if op.Kind == trace.SyncFolder {
		d.syncNames(is)
		return
	}
	d.file(op.File).sync(is, op.Kind == trace.Sync)
}

// syncNames makes changes of names durable. The changes of one name are ordered, so all changes
// before a durable one are also durable, even if their sync failed.
func (d *disk) syncNames(covered map[*change]bool) {
	later := make(map[string]bool) // names of durable changes
	for _, c := range slices.Backward(d.renamed) {
		names := c.names()
		if covered[c] = covered[c] || slices.ContainsFunc(names, func(name string) bool { return later[name] }); covered[c] {
			for _, name := range names {
				later[name] = true
			}
		}
	}
	var left []*change
	for _, c := range d.renamed {
		if covered[c] {
			trace.Rewrite(d.names, c.Op)
		} else {
			left = append(left, c)
		}
	}
	d.renamed = left
}

// names returns the names that a change of names touches.
func (c *change) names() []string {
	switch c.Kind {
	case trace.Link:
		return []string{c.To}
	case trace.Rename:
		return []string{c.Name, c.To}
	}
	return []string{c.Name}
}

// sync makes changes durable. Without withSize, ftruncates that grow the file stay pending, and
// the file ends at its last durable byte.
func (f *file) sync(covered map[*change]bool, withSize bool) {
	var left []*change
	for i, c := range f.pending {
		switch {
		case !covered[c], c.grows && !withSize:
			left = append(left, c)
		case c.Kind == trace.Truncate:
			f.truncate(c)
			if !c.grows {
				left = nil // it truncates earlier growth
			}
		default:
			f.rewrite(f.pending[:i], c)
			f.put(c.At, c.Data)
		}
	}
	f.pending = left
}

// rewrite makes the doubtful changes of the pages that a write touches durable.
func (f *file) rewrite(before []*change, w *change) {
	for _, c := range before {
		if !c.doubtful || c.Kind != trace.Write {
			continue
		}
		c.blocks(pageSize, func(at int64, part []byte) {
			page := at / pageSize
			if at < w.At+int64(len(w.Data)) && at+int64(len(part)) > w.At/pageSize*pageSize && !c.rewritten[page] {
				f.put(at, part)
				if c.rewritten == nil {
					c.rewritten = make(map[int64]bool)
				}
				c.rewritten[page] = true
			}
		})
	}
}

// blocks calls fn for each part of a write in a block of a size.
func (c *change) blocks(size int64, fn func(at int64, part []byte)) {
	at, data := c.At, c.Data
	for len(data) > 0 {
		n := min(size-at%size, int64(len(data)))
		fn(at, data[:n])
		at, data = at+n, data[n:]
	}
}

func (f *file) put(at int64, data []byte) {
	f.data = trace.Put(f.data, at, data)
	f.size = max(f.size, int64(len(f.data)))
}

func (f *file) truncate(c *change) {
	if c.grows {
		f.size = max(f.size, c.Size)
		return
	}
	if f.size = c.Size; int64(len(f.data)) > c.Size {
		f.data = f.data[:c.Size:c.Size]
	}
}
