package pages

import (
	"bytes"
	"encoding/binary"
)

// element is a key of a leaf page and its value.
type element struct {
	key       []byte
	value     []byte // nil, and not read yet, if the page overflows
	valueAt   int64  // in the file
	valueSize int64
	bucket    bool
}

// bounds limit the keys of a page, as its parent says: the first equals low, all are below high.
// nil means no limit. loose allows any order.
type bounds struct {
	low, high []byte
	loose     bool
}

// elements calls found for each element of a leaf page in order, and bad for each damage. It
// stops at an error of either. Misplaced elements are damage. Key and value are valid during the
// call; found must not read through r except for this value.
func (r *reader) elements(p page, b bounds, found func(element) error, bad func(error) error) error {
	if p.overflow > 0 {
		return r.longElements(p, b, found, bad)
	}
	run, err := r.read(p.at, int(p.size))
	if err != nil {
		return err
	}
	return eachElement(p, run, b, found, bad)
}

// eachElement implements elements for a page in memory.
func eachElement(p page, run []byte, b bounds, found func(element) error, bad func(error) error) error {
	var last []byte
	prevEnd := p.tableEnd()
	count, err := p.leafCount(run, b, bad)
	if err != nil {
		return err
	}
	for i := range count {
		s, bucket, wrong := leafSpan(run, i, int64(len(run)), prevEnd, b.loose)
		var key []byte
		if wrong == "" {
			key = run[s.key:s.value]
			prevEnd = s.end
			wrong = b.misplaced(i, last, key)
		}
		if wrong != "" {
			if err := bad(damage(p.id, "element %d %s", i, wrong)); err != nil {
				return err
			}
			continue
		}
		last = key
		if err := found(element{key, run[s.value:s.end:s.end], p.at + s.value, s.end - s.value, bucket}); err != nil {
			return err
		}
	}
	return nil
}

// longElements implements elements for a page with overflow. It reads keys one by one and skips
// the values, which may be large.
func (r *reader) longElements(p page, b bounds, found func(element) error, bad func(error) error) error {
	table, err := r.read(p.at, pageHeader+elementWidth)
	if err != nil {
		return err
	}
	count, err := p.leafCount(table, b, bad)
	if err != nil {
		return err
	}
	if table, err = r.read(p.at, pageHeader+elementWidth*count); err != nil {
		return err
	}
	r.table = append(r.table[:0], table...)
	r.last = r.last[:0]
	prevEnd := p.tableEnd()
	for i := range count {
		s, bucket, wrong := leafSpan(r.table, i, p.size, prevEnd, b.loose)
		var key []byte
		if wrong == "" {
			if key, err = r.read(p.at+s.key, int(s.value-s.key)); err != nil {
				return err
			}
			prevEnd = s.end
			wrong = b.misplaced(i, r.last, key)
		}
		if wrong != "" {
			if err := bad(damage(p.id, "element %d %s", i, wrong)); err != nil {
				return err
			}
			continue
		}
		r.last = append(r.last[:0], key...)
		if err := found(element{r.last, nil, p.at + s.value, s.end - s.value, bucket}); err != nil {
			return err
		}
	}
	return nil
}

// leafCount returns the number of elements to read. With loose bounds it is the number of
// elements that there is room for.
func (p page) leafCount(run []byte, b bounds, bad func(error) error) (count int, err error) {
	if !b.loose || len(run) < pageHeader+elementWidth {
		return int(p.count), nil
	}
	if count = p.trueCount(run[pageHeader:], false); count != int(p.count) {
		err = bad(damage(p.id, "it has %d elements and room for %d", p.count, count))
	}
	return count, err
}

// misplaced returns what is wrong with the place of key i after the key last, or "". If the first
// key of a page differs from its key in the parent, bbolt writes the page to another place.
func (b bounds) misplaced(i int, last, key []byte) string {
	switch {
	case b.loose:
		return ""
	case b.low != nil && i == 0 && !bytes.Equal(key, b.low):
		return "has another key than the parent has for the page"
	case b.low != nil && bytes.Compare(key, b.low) < 0:
		return "has a key that belongs on an earlier page"
	case len(last) > 0 && bytes.Compare(key, last) <= 0:
		return "has a key that is not greater than the previous one"
	case b.high != nil && bytes.Compare(key, b.high) >= 0:
		return "has a key that belongs on a later page"
	}
	return ""
}

// bucketRoot parses the value of a bucket: root is the root page of its tree, or 0, and then
// inline holds its page.
func bucketRoot(value []byte) (root, sequence uint64, inline []byte) {
	root, sequence = binary.NativeEndian.Uint64(value), binary.NativeEndian.Uint64(value[8:])
	if root == 0 {
		inline = value[bucketHeader:]
	}
	return root, sequence, inline
}

// inlinePage parses the page of an inline bucket, which is at offset at, on page id.
func inlinePage(b []byte, id uint64, at int64) (p page, wrong string) {
	if len(b) < pageHeader {
		return p, "is a truncated inline bucket"
	}
	p = page{header: parseHeader(b), at: at, size: int64(len(b))}
	switch {
	case p.flags != flagLeaf || p.overflow != 0:
		return p, "is an inline bucket without a leaf page"
	case p.tableEnd() > p.size:
		return p, "is an inline bucket whose elements do not fit"
	}
	p.id = id // for errors
	return p, ""
}
