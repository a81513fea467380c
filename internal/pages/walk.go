package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Problem is a damage that a walk went past.
type Problem struct {
	Page   uint64
	Bucket [][]byte // the names that lead to the bucket in which it is
	Err    error    // what is wrong: [ErrDamaged], or why the page could not be read
}

// Element is a key and its value, as far as the page that holds them is sound. Neither has a
// checksum of bbolt's.
type Element struct {
	Page uint64
	Key  []byte // valid during the call
	Size int64  // bytes of the value

	value []byte
	at    int64
	from  *reader
}

// Value reads the value, which is valid during the call.
func (e Element) Value() ([]byte, error) {
	if e.value != nil || e.Size == 0 {
		return e.value, nil
	}
	return e.from.read(e.at, int(e.Size))
}

// Visitor is what a walk calls. The names that lead to a bucket are valid during the call.
// An error of a function ends the walk with that error.
type Visitor struct {
	// Bucket is told of each bucket before its elements. [ErrSkipBucket] leaves it out.
	Bucket func(path [][]byte, sequence uint64) error

	// Element is told of each element that is no bucket, mostly in the order of keys.
	Element func(path [][]byte, e Element) error

	// Problem is told of each damage, once for a page and a bucket.
	Problem func(Problem)
}

// ErrSkipBucket as the error of [Visitor.Bucket] leaves out what is in the bucket.
var ErrSkipBucket = errors.New("skip this bucket")

// Walked is what a walk has reached.
type Walked struct {
	ctx     context.Context
	r       reader
	v       Visitor
	reached bitmap
	again   bitmap          // reached a second time
	covered bitmap          // by the overflow of those
	told    map[string]bool // pages and buckets of which a problem was told
}

// Walk visits every bucket and every element to which meta leads, and goes on past what is
// damaged. A page to which two pages lead is visited by way of both, since nobody can tell
// which of them is right, and no page more often than that. Unlike [Check] it does not ask
// for the order of keys.
//
// Its errors are those of the visitor and of ctx.
func Walk(ctx context.Context, f io.ReaderAt, size int64, meta Meta, v Visitor) (*Walked, error) {
	w := unwalked(ctx, f, size, meta)
	w.v = v
	return w, w.tree(meta.Root, meta.Page, nil, 0)
}

// unwalked has reached nothing yet. A file that was cut counts as if it went on with zeros
// to the end of its last page.
func unwalked(ctx context.Context, f io.ReaderAt, size int64, meta Meta) *Walked {
	pageSize := int64(meta.PageSize)
	meta.Pages = min(meta.Pages, uint64((size+pageSize-1)/pageSize))
	return &Walked{
		ctx: ctx, r: reader{f: padded{f, size}, meta: meta},
		reached: newBitmap(meta.Pages), again: newBitmap(meta.Pages), covered: newBitmap(meta.Pages), told: make(map[string]bool),
	}
}

// padded is a file with zeros behind its end.
type padded struct {
	f    io.ReaderAt
	size int64
}

func (p padded) ReadAt(b []byte, off int64) (int, error) {
	inside := int(max(0, min(int64(len(b)), p.size-off)))
	clear(b[inside:])
	n, err := p.f.ReadAt(b[:inside], off)
	if n < inside {
		return n, err
	}
	return len(b), nil
}

func (w *Walked) problem(page uint64, path [][]byte, err error) {
	if at := fmt.Sprintf("%d %q", page, path); !w.told[at] && w.v.Problem != nil {
		w.told[at] = true
		w.v.Problem(Problem{page, path, err})
	}
}

// nested is a bucket that was met on a leaf page.
type nested struct {
	path [][]byte
	root uint64
}

// tree visits page id, to which page from leads, and all below it in the bucket of the
// path, and then the buckets in that.
func (w *Walked) tree(id, from uint64, path [][]byte, level int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if level > maxTreeDepth || len(path) > maxNesting {
		w.problem(from, path, damage(from, "what it leads to is too deep"))
		return nil
	}
	p, err := w.r.page(id, from)
	if err != nil {
		if id < 2 || id >= w.r.meta.Pages {
			id = from
		}
		w.problem(id, path, err)
		return nil
	}
	if !w.reached.add(id) {
		w.problem(from, path, damage(from, "it leads to page %d, which was reached before", id))
		if !w.again.add(id) {
			return nil
		}
	}
	if p.isBranch() {
		return w.branch(p, path, level)
	}
	return w.leaf(p, path)
}

func (w *Walked) branch(p page, path [][]byte, level int) error {
	run := make([]byte, p.size)
	if err := w.r.readAt(run, p.at); err != nil {
		w.problem(p.id, path, err)
		return nil
	}
	b := &branch{page: p, run: run}
	children, end := b.children(func(err error) { w.problem(p.id, path, err) })
	w.cover(p, end)
	for _, id := range children {
		if err := w.tree(id, p.id, path, level+1); err != nil {
			return err
		}
	}
	return nil
}

// cover notes the pages of a run that hold something, which ends at an offset of the file.
// What its header says may be more, when that is what is damaged, and then those pages are
// not its own. One that something else leads to is visited all the same.
func (w *Walked) cover(p page, end int64) {
	for id := p.id + 1; int64(id)*int64(w.r.meta.PageSize) < end; id++ {
		w.covered.add(id)
	}
}

func (w *Walked) leaf(p page, path [][]byte) error {
	var buckets []nested
	stopped, end := false, p.at
	err := w.r.elements(p, bounds{loose: true}, func(e element) error {
		end = max(end, e.valueAt+e.valueSize)
		found, err := w.element(p, path, e)
		if found.root != 0 {
			buckets = append(buckets, found)
		}
		stopped = err != nil
		return err
	}, func(err error) error {
		w.problem(p.id, path, err)
		return nil
	})
	switch {
	case stopped:
		return err
	case err != nil:
		w.problem(p.id, path, err)
	default:
		w.cover(p, end)
	}
	for _, b := range buckets {
		if err := w.tree(b.root, p.id, b.path, 0); err != nil {
			return err
		}
	}
	return nil
}

// element visits one element. A bucket with a tree of its own is returned, to be visited
// later.
func (w *Walked) element(p page, path [][]byte, e element) (found nested, err error) {
	if !e.bucket {
		if w.v.Element == nil {
			return found, nil
		}
		return found, w.v.Element(path, Element{p.id, e.key, e.valueSize, e.value, e.valueAt, &w.r})
	}
	if e.valueSize < bucketHeader || e.valueSize > int64(w.r.meta.PageSize) {
		w.problem(p.id, path, damage(p.id, "it holds a bucket of %d bytes", e.valueSize))
		return found, nil
	}
	value := make([]byte, e.valueSize)
	path = append(slices.Clone(path), slices.Clone(e.key))
	if err := w.r.readAt(value, e.valueAt); err != nil {
		w.problem(p.id, path, err)
		return found, nil
	}
	root, sequence, inline := bucketRoot(value)
	if w.v.Bucket != nil {
		if err := w.v.Bucket(path, sequence); errors.Is(err, ErrSkipBucket) {
			return found, nil
		} else if err != nil {
			return found, err
		}
	}
	if root != 0 {
		return nested{path, root}, nil
	}
	return found, w.inline(p.id, path, inline, e.valueAt+bucketHeader)
}

// inline visits the elements of a small bucket that lies on page id.
func (w *Walked) inline(id uint64, path [][]byte, b []byte, at int64) error {
	small, wrong := inlinePage(b, id, at)
	if wrong != "" {
		w.problem(id, path, damage(id, "an element %s", wrong))
		return nil
	}
	return eachElement(small, b, bounds{loose: true}, func(e element) error {
		if e.bucket {
			w.problem(id, path, damage(id, "a small bucket holds another"))
			return nil
		}
		if w.v.Element == nil {
			return nil
		}
		return w.v.Element(path, Element{id, e.key, e.valueSize, e.value, e.valueAt, &w.r})
	}, func(err error) error {
		w.problem(id, path, err)
		return nil
	})
}
