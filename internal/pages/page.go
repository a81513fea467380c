package pages

import "encoding/binary"

// The layout of pages, in the byte order of the machine.
const (
	pageHeader   = 16 // id (8), flags (2), count of elements (2), pages of overflow (4)
	elementWidth = 16 // of a branch: pos, key size, page (8); of a leaf: flags, pos, key size, value size
	bucketHeader = 16 // root (8), sequence (8); root 0 says that the bucket's page follows

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	elementIsBucket = 0x01

	// maxKey is the longest key that bbolt takes, in bytes. It lets the name of a bucket be
	// longer; we do not.
	maxKey = 32 << 10

	// What is deeper than this is a damage: with two children a page, and it has at least
	// that, 2^32 pages are more than a file has.
	maxTreeDepth = 32

	// maxNesting is how deep buckets may lie within buckets.
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

// page is a page whose header is sound.
type page struct {
	header
	at   int64 // its offset in the file
	size int64 // bytes of its run: itself and its overflow
}

// isBranch says whether it leads to pages and not to elements.
func (p page) isBranch() bool { return p.flags == flagBranch }

// tableEnd is where the elements end, and their keys and values may begin.
func (h header) tableEnd() int64 { return pageHeader + elementWidth*int64(h.count) }

// span is where the key and the value of an element lie within the run of its page.
type span struct {
	key, value, end int64
}

// leafSpan finds element i. Table holds all elements, size is that of the run; behind is
// where the data of the element before end, and where its own must begin. It returns what is
// wrong, or "". Loose asks no more than that it lies within the run.
func leafSpan(table []byte, i int, size, behind int64, loose bool) (s span, bucket bool, wrong string) {
	at := pageHeader + elementWidth*i
	b := table[at : at+elementWidth]
	flags := binary.NativeEndian.Uint32(b)
	keySize := int64(binary.NativeEndian.Uint32(b[8:]))
	s.key = int64(at) + int64(binary.NativeEndian.Uint32(b[4:]))
	s.value = s.key + keySize
	s.end = s.value + int64(binary.NativeEndian.Uint32(b[12:]))
	return s, flags&elementIsBucket != 0, wrongElement(flags&^elementIsBucket, keySize, s, size, behind, loose)
}

// branchSpan is leafSpan for the element of a branch page, which leads to child.
func branchSpan(table []byte, i int, size, behind int64, loose bool) (s span, child uint64, wrong string) {
	at := pageHeader + elementWidth*i
	b := table[at : at+elementWidth]
	keySize := int64(binary.NativeEndian.Uint32(b[4:]))
	s.key = int64(at) + int64(binary.NativeEndian.Uint32(b))
	s.value = s.key + keySize
	s.end = s.value
	return s, binary.NativeEndian.Uint64(b[8:]), wrongElement(0, keySize, s, size, behind, loose)
}

func wrongElement(unknown uint32, keySize int64, s span, size, behind int64, loose bool) string {
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
	case s.key < behind:
		return "overlaps what lies before it"
	case s.key > behind:
		return "leaves a gap behind what lies before it" // bbolt leaves none: elements were lost here
	}
	return ""
}

// trueCount is how many elements a page has room for in front of the first key, where that
// is more than its header says: there the header is what is damaged, or the element.
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
