package pages

import (
	"context"
	"io"
)

// Unreached calls found for the elements of leaf pages that the walk did not reach or that have misplaced ones, and that
// the file does not list as free. They were lost with a damaged page above them, or are old copies; without a
// list of free pages the two cannot be told apart. Buckets are skipped.
//
// Errors: those of found and of the walk's context.
func (w *Walked) Unreached(found func(Element) error) error {
	skip := w.free()
	for id := uint64(2); id < w.r.meta.Pages; id++ {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if skip.has(id) {
			continue
		}
		p, err := w.r.page(id, id)
		if err != nil || p.isBranch() {
			continue
		}
		stopped := false
		err = w.r.elements(p, bounds{loose: true}, func(e element) error {
			if e.bucket {
				return nil
			}
			err := found(Element{id, e.key, e.valueSize, e.value, e.valueAt, &w.r})
			stopped = err != nil
			return err
		}, func(error) error { return nil })
		if stopped {
			return err
		}
	}
	return nil
}

// free returns the reached pages and, if the list of free pages is sound and none of them was
// reached, the free pages.
func (w *Walked) free() bitmap {
	used, all := newBitmap(w.r.meta.Pages), newBitmap(w.r.meta.Pages)
	for i := range w.reached {
		reached := w.reached[i].Load()&^w.strange[i].Load() | w.covered[i].Load()
		used[i].Store(reached)
		all[i].Store(reached)
	}
	v := &visitor{check: &check{ctx: w.ctx, from: w.r.meta, reached: all}, reader: reader{f: w.r.f, meta: w.r.meta}}
	if v.freelist() != nil {
		return used
	}
	return all
}

// UnreachedOnly returns an empty walk for a file without a sound meta page. It uses the page size
// at which the most pages name themselves in their headers; ok is false if none does.
//
// Errors: those of ctx.
func UnreachedOnly(ctx context.Context, f io.ReaderAt, size int64) (w *Walked, ok bool, err error) {
	best := 0
	for pageSize := uint32(minPageSize); pageSize <= maxPageSize; pageSize *= 2 {
		if size < int64(pageSize) {
			break
		}
		meta := Meta{PageSize: pageSize, Pages: maxFile / uint64(pageSize), Freelist: noFreelist}
		this := unwalked(ctx, f, size, meta)
		n := 0
		step := max(1, this.r.meta.Pages/samplePages)
		for id := uint64(2); id < this.r.meta.Pages; id += step {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			if h, err := this.r.header(id); err == nil && h.id == id && (h.flags == flagLeaf || h.flags == flagBranch) {
				n++
			}
		}
		if n > best {
			w, best = this, n
		}
	}
	return w, best > 0, nil
}

// samplePages limits the number of pages that UnreachedOnly samples for each page size.
const samplePages = 1 << 16
