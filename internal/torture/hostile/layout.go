package hostile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"os"
)

// The layout of a bbolt file, in the byte order of the machine.
const (
	headerWidth  = 16 // id (8), flags (2), count (2), overflow (4)
	elementWidth = 16

	atFlags, atCount, atOverflow = 8, 10, 12 // offsets in a page's header

	flagBranch, flagLeaf, flagFreelist = 1, 2, 0x10

	// Offsets in a meta page.
	metaMagic, metaVersion, metaPageSize, metaFlags    = 16, 20, 24, 28
	metaRoot, metaSequence, metaFreelist, metaHighMark = 32, 40, 48, 56
	metaTxid, metaSum                                  = 64, 72

	noFreelist = 1<<64 - 1
)

var native = binary.NativeEndian

// layout is a sound file and the positions of its parts.
type layout struct {
	whole    []byte
	pageSize int
	pages    int       // the high-water mark
	freelist int       // its page, 0 when there is none
	tree     []node    // the pages of all trees
	rows     []element // elements of all leaf pages and inline buckets
	roots    []int     // offsets of the headers of buckets
	free     []int     // pages outside all trees
}

// node is a page of a tree.
type node struct {
	page, parent  int
	bucket        string
	flags, extent int // extent is its number of pages
	count         int
}

// element is a key with its value.
type element struct {
	bucket              string
	page                int // the page that has it
	at                  int // offset of its element header in the file
	key, value, end     int // offsets in the file
	holdsBucket, inline bool
}

func layoutOf(path string) (*layout, error) {
	whole, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &layout{whole: whole, pageSize: int(native.Uint32(whole[metaPageSize:]))}
	newest := 0
	if native.Uint64(whole[l.pageSize+metaTxid:]) > native.Uint64(whole[metaTxid:]) {
		newest = l.pageSize
	}
	l.pages = int(native.Uint64(whole[newest+metaHighMark:]))
	if id := native.Uint64(whole[newest+metaFreelist:]); id != noFreelist {
		l.freelist = int(id)
	}
	l.walk(int(native.Uint64(whole[newest+metaRoot:])), 0, "")
	reached := make(map[int]bool)
	for _, n := range l.tree {
		for i := range n.extent {
			reached[n.page+i] = true
		}
	}
	for id := 2; id < l.pages; id++ {
		if !reached[id] && id != l.freelist {
			l.free = append(l.free, id)
		}
	}
	if len(l.rows) == 0 || len(l.tree) == 0 {
		return nil, fmt.Errorf("the sound file %s has no rows", path)
	}
	return l, nil
}

// walk visits a page of a tree and all pages below it.
func (l *layout) walk(id, parent int, bucket string) {
	at := id * l.pageSize
	n := node{
		page: id, parent: parent, bucket: bucket,
		flags: int(native.Uint16(l.whole[at+atFlags:])), count: int(native.Uint16(l.whole[at+atCount:])),
		extent: 1 + int(native.Uint32(l.whole[at+atOverflow:])),
	}
	l.tree = append(l.tree, n)
	if n.flags == flagBranch {
		for i := range n.count {
			l.walk(int(native.Uint64(l.whole[at+headerWidth+i*elementWidth+8:])), id, bucket)
		}
		return
	}
	l.leaf(id, at, n.count, bucket, false)
}

// leaf visits the elements of the leaf page whose header is at an offset.
func (l *layout) leaf(id, header, count int, bucket string, inline bool) {
	for i := range count {
		at := header + headerWidth + i*elementWidth
		e := element{bucket: bucket, page: id, at: at, inline: inline, holdsBucket: native.Uint32(l.whole[at:]) != 0}
		e.key = at + int(native.Uint32(l.whole[at+4:]))
		e.value = e.key + int(native.Uint32(l.whole[at+8:]))
		e.end = e.value + int(native.Uint32(l.whole[at+12:]))
		l.rows = append(l.rows, e)
		if !e.holdsBucket {
			continue
		}
		l.roots = append(l.roots, e.value)
		name := string(l.whole[e.key:e.value])
		if root := int(native.Uint64(l.whole[e.value:])); root != 0 {
			l.walk(root, id, name)
		} else {
			l.leaf(id, e.value+16, int(native.Uint16(l.whole[e.value+16+atCount:])), name, true)
		}
	}
}

// sumMeta corrects the checksum of a meta page.
func sumMeta(page []byte) {
	h := fnv.New64a()
	h.Write(page[metaMagic:metaSum])
	native.PutUint64(page[metaSum:], h.Sum64())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal corrects the checksum at the end of a row.
func seal(key, sealed []byte) {
	if n := len(sealed) - 4; n >= 0 {
		binary.LittleEndian.PutUint32(sealed[n:], crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, sealed[:n]))
	}
}

// sealRow corrects the checksum of a row of a bucket.
func sealRow(bucket string, key, value []byte) {
	switch {
	case bucket == "jobs":
		sealJob(key, value)
	case ofFlows(bucket):
		sealFlow(bucket, key, value)
	default:
		seal(key, value)
	}
}

// sealJob corrects the checksums of a job's record and of the failures in front of it.
func sealJob(key, value []byte) {
	if len(value) > 3 && value[0] == 3 {
		if end := 3 + int(binary.BigEndian.Uint16(value[1:])) + 4; end <= len(value) {
			seal(key, value[:end])
			value = value[end:]
		}
	}
	sealRecord(value)
}

// sealRecord corrects the checksum at the start of a job's record.
func sealRecord(record []byte) {
	if len(record) >= 5 {
		binary.LittleEndian.PutUint32(record[1:], crc32.Checksum(record[5:], castagnoli))
	}
}
