package pages

import (
	"bytes"
	"encoding/binary"
)

// element is a key of a leaf page with its value, which need not have been read.
type element struct {
	key       []byte
	value     []byte // nil where the page overflows
	valueAt   int64  // in the file
	valueSize int64
	bucket    bool
}

// bounds are what a parent says about the keys of a page: the first is low, all are below
// high. Nil stands for no bound. Loose are those for keys in any order.
type bounds struct {
	low, high []byte
	loose     bool
}

// elements calls found for the elements of a leaf page in their order, and bad for what is
// wrong with one; an error of either ends it. An element that lies out of order, or of the
// bounds, is not found. Key and value are valid during the call, in which found reads
// nothing else through r.
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

// eachElement is elements for a page that is in memory.
func eachElement(p page, run []byte, b bounds, found func(element) error, bad func(error) error) error {
	var last []byte
	behind := p.tableEnd()
	count, err := p.leafCount(run, b, bad)
	if err != nil {
		return err
	}
	for i := range count {
		s, bucket, wrong := leafSpan(run, i, int64(len(run)), behind, b.loose)
		var key []byte
		if wrong == "" {
			key = run[s.key:s.value]
			behind = s.end
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

// longElements is elements for a page that overflows. It reads the keys one by one and
// leaves out the values, which may be large.
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
	behind := p.tableEnd()
	for i := range count {
		s, bucket, wrong := leafSpan(r.table, i, p.size, behind, b.loose)
		var key []byte
		if wrong == "" {
			if key, err = r.read(p.at+s.key, int(s.value-s.key)); err != nil {
				return err
			}
			behind = s.end
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

// leafCount is how many elements of a leaf page are looked at. Where the keys may be in any
// order, that is as many as there is room for.
func (p page) leafCount(run []byte, b bounds, bad func(error) error) (count int, err error) {
	if !b.loose || len(run) < pageHeader+elementWidth {
		return int(p.count), nil
	}
	if count = p.trueCount(run[pageHeader:], false); count != int(p.count) {
		err = bad(damage(p.id, "it names %d elements, and has room for %d", p.count, count))
	}
	return count, err
}

// misplaced says what is wrong with the place of key i, which comes behind last. Where the
// first key of a page is not the one by which its parent knows it, bbolt would put the page
// beside itself when it writes it.
func (b bounds) misplaced(i int, last, key []byte) string {
	switch {
	case b.loose:
		return ""
	case b.low != nil && i == 0 && !bytes.Equal(key, b.low):
		return "has not the key by which the parent knows the page"
	case b.low != nil && bytes.Compare(key, b.low) < 0:
		return "has a key that comes before those of its page"
	case len(last) > 0 && bytes.Compare(key, last) <= 0:
		return "has a key that does not come behind the one before"
	case b.high != nil && bytes.Compare(key, b.high) >= 0:
		return "has a key that belongs on a later page"
	}
	return ""
}

// bucketRoot reads the header of a bucket: the page where its tree begins, or 0 and the
// page that lies within the value.
func bucketRoot(value []byte) (root, sequence uint64, inline []byte) {
	root, sequence = binary.NativeEndian.Uint64(value), binary.NativeEndian.Uint64(value[8:])
	if root == 0 {
		inline = value[bucketHeader:]
	}
	return root, sequence, inline
}

// inlinePage looks at the header of a bucket's page that lies on page id, at offset at.
func inlinePage(b []byte, id uint64, at int64) (p page, wrong string) {
	if len(b) < pageHeader {
		return p, "is a small bucket that is cut"
	}
	p = page{header: parseHeader(b), at: at, size: int64(len(b))}
	switch {
	case p.flags != flagLeaf || p.overflow != 0:
		return p, "is a small bucket without a leaf page"
	case p.tableEnd() > p.size:
		return p, "is a small bucket whose elements do not fit"
	}
	p.id = id // for messages
	return p, ""
}
