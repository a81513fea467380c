package pages

import "encoding/binary"

// The layout of pages, in native byte order.
const (
	pageHeader   = 16 // id (8), flags (2), element count (2), overflow pages (4)
	elementWidth = 16 // branch: pos, key size, page (8); leaf: flags, pos, key size, value size
	bucketHeader = 16 // root (8), sequence (8); after root 0 follows the inline page

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	elementIsBucket = 0x01

	// maxKey is bbolt's limit for keys, in bytes. Bucket names may be longer in bbolt, but not
	// here.
	maxKey = 32 << 10

	// maxTreeDepth is the depth of the deepest sound tree: a branch has at least two children,
	// and no file has 2^32 pages.
	maxTreeDepth = 32

	// maxNesting is the maximum depth of buckets in buckets.
	maxNesting = 128
)

// header is the header of a page.
type header struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32
}

func parseHeader(b []byte) header {
	return header{
		id:       binary.NativeEndian.Uint64(b),
		flags:    binary.NativeEndian.Uint16(b[8:]),
		count:    binary.NativeEndian.Uint16(b[10:]),
		overflow: binary.NativeEndian.Uint32(b[12:]),
	}
}

// page is a page with a sound header.
type page struct {
	header
	at   int64 // offset in the file
	size int64 // bytes, including overflow
}

// isBranch reports whether the page is a branch; otherwise it is a leaf.
func (p page) isBranch() bool { return p.flags == flagBranch }

// tableEnd returns the offset in the page at which keys and values begin.
func (h header) tableEnd() int64 { return pageHeader + elementWidth*int64(h.count) }

// span is the place of an element's key and value within its page.
type span struct {
	key, value, end int64
}

// leafSpan finds element i. table holds all elements, size is the length of the page with its
// overflow, and prevEnd is where the previous element's data end and this element's data must
// begin. wrong describes damage, or is "". With loose the data may be anywhere in the page.
func leafSpan(table []byte, i int, size, prevEnd int64, loose bool) (s span, bucket bool, wrong string) {
	at := pageHeader + elementWidth*i
	b := table[at : at+elementWidth]
	flags := binary.NativeEndian.Uint32(b)
	keySize := int64(binary.NativeEndian.Uint32(b[8:]))
	s.key = int64(at) + int64(binary.NativeEndian.Uint32(b[4:]))
	s.value = s.key + keySize
	s.end = s.value + int64(binary.NativeEndian.Uint32(b[12:]))
	return s, flags&elementIsBucket != 0, wrongElement(flags&^elementIsBucket, keySize, s, size, prevEnd, loose)
}

// branchSpan finds element i of a branch page, which leads to child.
func branchSpan(table []byte, i int, size, prevEnd int64, loose bool) (s span, child uint64, wrong string) {
	at := pageHeader + elementWidth*i
	b := table[at : at+elementWidth]
	keySize := int64(binary.NativeEndian.Uint32(b[4:]))
	s.key = int64(at) + int64(binary.NativeEndian.Uint32(b))
	s.value = s.key + keySize
	s.end = s.value
	return s, binary.NativeEndian.Uint64(b[8:]), wrongElement(0, keySize, s, size, prevEnd, loose)
}

func wrongElement(unknown uint32, keySize int64, s span, size, prevEnd int64, loose bool) string {
	switch {
	case unknown != 0:
		return "has unknown flags"
	case keySize == 0:
		return "has an empty key"
	case keySize > maxKey:
		return "has a key that is too long"
	case s.end > size:
		return "reaches beyond its page"
	case loose:
		return ""
	case s.key < prevEnd:
		return "overlaps the previous one"
	case s.key > prevEnd:
		return "leaves a gap after the previous one" // bbolt leaves none, so elements were lost
	}
	return ""
}

// trueCount returns the number of elements that fit before the first key if it is larger than the
// count of the header. Then either the header or that element is damaged.
func (p page) trueCount(first []byte, isBranch bool) int {
	pos := first[4:]
	if isBranch {
		pos = first
	}
	n := int64(binary.NativeEndian.Uint32(pos))
	if n%elementWidth != 0 || n/elementWidth <= int64(p.count) || n/elementWidth > 1<<16 || pageHeader+n > p.size {
		return int(p.count)
	}
	return int(n / elementWidth)
}
