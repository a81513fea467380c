package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// Check reads a bbolt file of size bytes. It returns nil if bbolt can open, read, write and
// check the file without a panic, a fault or a loop. Otherwise it returns the first problem.
// A page that is neither used nor free is not a problem; it is only lost space.
//
// Check reads every page, element, key and bucket, but no values, because bbolt does not
// interpret them. It takes about a second for each GiB of small rows in the page cache, and less
// if values are large.
//
// Check reads with up to four goroutines, which have ended when it returns. The file must not
// change meanwhile.
//
// Errors: [ErrDamaged], with [ErrFreelist] if only the list of free pages is damaged,
// [ErrForeign], the cause of ctx, and errors of f.
func Check(ctx context.Context, f io.ReaderAt, size int64) error {
	meta, err := Newest(f)
	if err != nil {
		return err
	}
	if meta.Bytes() > size {
		return fmt.Errorf("%w: the file is truncated: it has %d bytes of %d", ErrDamaged, size, meta.Bytes())
	}
	if err := meta.check(f); err != nil {
		return err
	}
	return meta.checkTree(ctx, f)
}

func (m Meta) checkTree(ctx context.Context, f io.ReaderAt) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c := &check{
		ctx: ctx, stop: stop, file: f, from: m,
		reached: newBitmap(m.Pages),
		helpers: make(chan struct{}, min(runtime.GOMAXPROCS(0), 4)-1),
	}
	v := c.visitor()
	err := v.bucket(m.Root, m.Page, 0)
	if err == nil {
		if err = v.freelist(); errors.Is(err, ErrDamaged) {
			err = listDamage{err}
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the first error of several goroutines
	}
	return err
}

// check is the state that the goroutines of one Check share.
type check struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	file io.ReaderAt
	from Meta

	reached bitmap
	helpers chan struct{} // limits additional goroutines
}

// visitor is one goroutine's state of a Check.
type visitor struct {
	*check
	reader
	branches [][]byte // buffers, one for each level
}

func (c *check) visitor() *visitor {
	return &visitor{check: c, reader: reader{f: c.file, meta: c.from}}
}

// tree is the bucket that a visitor checks.
type tree struct {
	nesting int
	leaves  int // the level of its leaf pages; bbolt merges neighbors, which must be of one kind
}

// bucket checks the tree of a bucket whose element is on page from, and its nested buckets.
func (v *visitor) bucket(root, from uint64, nesting int) error {
	if nesting > maxNesting {
		return damage(from, "it has a bucket nested in %d others", nesting)
	}
	t := tree{nesting: nesting}
	if err := v.findLeaves(root, from, &t); err != nil {
		return err
	}
	return v.subtree(root, from, bounds{}, t, 0)
}

// findLeaves sets the level of a tree's leaf pages to the level of the first leaf page.
func (v *visitor) findLeaves(root, from uint64, t *tree) error {
	id, keys := root, bounds{}
	for t.leaves = 0; t.leaves <= maxTreeDepth; t.leaves++ {
		p, err := v.page(id, from)
		if err != nil || !p.isBranch() {
			return err
		}
		b, err := v.branch(p, keys, t.leaves)
		if err != nil {
			return err
		}
		from = id
		id, keys = b.child(0)
	}
	return damage(root, "its tree is deeper than %d pages", maxTreeDepth)
}

// subtree checks page id, a child of page from, and everything below it.
func (v *visitor) subtree(id, from uint64, keys bounds, t tree, level int) error {
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	p, err := v.page(id, from)
	if err != nil {
		return err
	}
	if twice, ok := v.reached.addRun(id, p.overflow); !ok {
		return damage(id, "page %d of its run is referenced again, from page %d", twice, from)
	}
	switch {
	case p.isBranch() != (level < t.leaves):
		return damage(id, "it is at level %d, but the leaf pages of its tree are at level %d", level, t.leaves)
	case p.isBranch():
		b, err := v.branch(p, keys, level)
		if err != nil {
			return err
		}
		return v.children(b, 0, int(b.count), t, level)
	case p.count == 0 && keys.low != nil:
		return damage(id, "it is an empty leaf below page %d", from)
	}
	return v.leaf(p, keys, t)
}

// branch reads and checks a branch page.
func (v *visitor) branch(p page, keys bounds, level int) (*branch, error) {
	for len(v.branches) <= level {
		v.branches = append(v.branches, nil)
	}
	run := v.branches[level]
	if int64(cap(run)) < p.size {
		run = make([]byte, p.size)
		v.branches[level] = run
	}
	run = run[:p.size]
	if err := v.readAt(run, p.at); err != nil {
		return nil, err
	}
	b := &branch{p, run, keys}
	return b, b.check()
}

// children checks the children from..to of a branch page, half of them in another goroutine if
// one is available.
func (v *visitor) children(b *branch, from, to int, t tree, level int) error {
	if half := from + (to-from)/2; half > from {
		select {
		case v.helpers <- struct{}{}:
			done := make(chan error, 1)
			go func() {
				defer func() { <-v.helpers }()
				helper := v.visitor()
				err := helper.children(b, half, to, t, level)
				if err != nil {
					v.stop(err)
				}
				done <- err
			}()
			err := v.children(b, from, half, t, level)
			if err != nil {
				v.stop(err)
			}
			if other := <-done; err == nil {
				err = other
			}
			return err
		default:
		}
	}
	for i := from; i < to; i++ {
		id, keys := b.child(i)
		if err := v.subtree(id, b.id, keys, t, level+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a leaf page and the buckets in it.
func (v *visitor) leaf(p page, keys bounds, t tree) error {
	var roots []uint64 // checked later, because that reuses the window
	err := v.elements(p, keys, func(e element) error {
		if !e.bucket {
			return nil
		}
		root, err := v.bucketValue(p, e)
		if root != 0 {
			roots = append(roots, root)
		}
		return err
	}, func(err error) error { return err })
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := v.nested(root, p.id, t); err != nil {
			return err
		}
	}
	return nil
}

// nested checks a bucket in a bucket. The branch pages above are still in use, so it has its own
// buffers.
func (v *visitor) nested(root, from uint64, t tree) error {
	above := v.branches
	v.branches = nil
	defer func() { v.branches = above }()
	return v.bucket(root, from, t.nesting+1)
}

// bucketValue checks the value of a bucket. It returns the root page of its tree, or 0 for an
// inline bucket.
func (v *visitor) bucketValue(p page, e element) (root uint64, err error) {
	if e.valueSize < bucketHeader || e.valueSize > int64(v.meta.PageSize) {
		return 0, damage(p.id, "it has a bucket of %d bytes", e.valueSize)
	}
	value := e.value
	if value == nil {
		if value, err = v.read(e.valueAt, int(e.valueSize)); err != nil {
			return 0, err
		}
	}
	root, _, inline := bucketRoot(value)
	if root != 0 {
		return root, nil
	}
	small, wrong := inlinePage(inline, p.id, e.valueAt+bucketHeader)
	if wrong != "" {
		return 0, damage(p.id, "an element %s", wrong)
	}
	return 0, eachElement(small, inline, bounds{}, func(e element) error {
		if e.bucket {
			return damage(p.id, "an inline bucket contains a bucket")
		}
		return nil
	}, func(err error) error { return err })
}
