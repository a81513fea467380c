package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Problem is a damage that a walk skipped.
type Problem struct {
	Page   uint64
	Bucket [][]byte // path of the damaged bucket
	Err    error    // [ErrDamaged], or the error of reading the page
}

// Element is a key and its value. bbolt has no checksums, so their content may be damaged.
type Element struct {
	Page uint64
	Key  []byte // valid during the call
	Size int64  // of the value, in bytes

	value []byte
	at    int64
	from  *reader
}

// Value returns the value, which is valid during the call.
func (e Element) Value() ([]byte, error) {
	if e.value != nil || e.Size == 0 {
		return e.value, nil
	}
	return e.from.read(e.at, int(e.Size))
}

// Visitor receives the content of a file. Bucket paths are valid during the call. A returned error
// ends the walk.
type Visitor struct {
	// Bucket is called for each bucket before its elements. [ErrSkipBucket] skips the bucket.
	Bucket func(path [][]byte, sequence uint64) error

	// Element is called for each element that is not a bucket, in key order unless pages are
	// damaged. [ErrMisplaced] says that its page may belong to another bucket.
	Element func(path [][]byte, e Element) error

	// Problem is called for each damage, once for each page and bucket.
	Problem func(Problem)
}

// ErrSkipBucket is returned by [Visitor.Bucket] to skip a bucket's content.
var ErrSkipBucket = errors.New("skip this bucket")

// ErrMisplaced is returned by [Visitor.Element] for an element that is not of its bucket. The walk goes on. Damage may have
// led it to the page, so [Walked.Unreached] has that page.
var ErrMisplaced = errors.New("the element is not of this bucket")

// Walked is the result of a walk: the pages that it reached.
type Walked struct {
	ctx     context.Context
	r       reader
	v       Visitor
	reached bitmap
	again   bitmap          // reached twice
	covered bitmap          // overflow of reached pages
	strange bitmap          // with misplaced elements
	seen    map[string]bool // reported pages and buckets
}

// Walk visits every bucket and element below meta and skips damage. A page with two parents is
// visited through both, because either may be right, but no page is visited more often. Unlike
// [Check], Walk accepts keys in any order.
//
// Errors: those of the visitor and of ctx.
func Walk(ctx context.Context, f io.ReaderAt, size int64, meta Meta, v Visitor) (*Walked, error) {
	w := unwalked(ctx, f, size, meta)
	w.v = v
	return w, w.tree(meta.Root, meta.Page, nil, 0)
}

// unwalked returns a walk that has reached nothing. A truncated file is read as if zeros filled
// its last page.
func unwalked(ctx context.Context, f io.ReaderAt, size int64, meta Meta) *Walked {
	pageSize := int64(meta.PageSize)
	meta.Pages = min(meta.Pages, uint64((size+pageSize-1)/pageSize))
	return &Walked{
		ctx: ctx, r: reader{f: padded{f, size}, meta: meta},
		reached: newBitmap(meta.Pages), again: newBitmap(meta.Pages), covered: newBitmap(meta.Pages),
		strange: newBitmap(meta.Pages), seen: make(map[string]bool),
	}
}

// padded is a file followed by zeros.
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
	if at := fmt.Sprintf("%d %q", page, path); !w.seen[at] && w.v.Problem != nil {
		w.seen[at] = true
		w.v.Problem(Problem{page, path, err})
	}
}

// nested is a bucket found on a leaf page.
type nested struct {
	path [][]byte
	root uint64
}

// tree visits page id, a child of page from, everything below it in the bucket at path, and then
// the nested buckets.
func (w *Walked) tree(id, from uint64, path [][]byte, level int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if level > maxTreeDepth || len(path) > maxNesting {
		w.problem(from, path, damage(from, "the tree below it is too deep"))
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
		w.problem(from, path, damage(from, "it refers to page %d, which was reached before", id))
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

// cover records the pages of a run up to the end of its data. The overflow in a damaged header may
// be larger and include pages of others. A covered page is still visited if another page refers to
// it.
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

// element visits one element. It returns a bucket with its own tree, to be visited later.
func (w *Walked) element(p page, path [][]byte, e element) (found nested, err error) {
	if !e.bucket {
		return found, w.visit(path, p.id, e)
	}
	if e.valueSize < bucketHeader || e.valueSize > int64(w.r.meta.PageSize) {
		w.problem(p.id, path, damage(p.id, "it has a bucket of %d bytes", e.valueSize))
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

// visit passes an element to the visitor.
func (w *Walked) visit(path [][]byte, id uint64, e element) error {
	if w.v.Element == nil {
		return nil
	}
	err := w.v.Element(path, Element{id, e.key, e.valueSize, e.value, e.valueAt, &w.r})
	if errors.Is(err, ErrMisplaced) {
		w.strange.add(id)
		return nil
	}
	return err
}

// inline visits the elements of an inline bucket on page id.
func (w *Walked) inline(id uint64, path [][]byte, b []byte, at int64) error {
	small, wrong := inlinePage(b, id, at)
	if wrong != "" {
		w.problem(id, path, damage(id, "an element %s", wrong))
		return nil
	}
	return eachElement(small, b, bounds{loose: true}, func(e element) error {
		if e.bucket {
			w.problem(id, path, damage(id, "an inline bucket contains a bucket"))
			return nil
		}
		return w.visit(path, id, e)
	}, func(err error) error {
		w.problem(id, path, err)
		return nil
	})
}
