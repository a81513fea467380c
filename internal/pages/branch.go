package pages

// branch is a branch page in memory, whose elements are sound.
type branch struct {
	page
	run []byte
	bounds
}

// key is that of child i.
func (b *branch) key(i int) []byte {
	s, _, _ := branchSpan(b.run, i, b.size, 0, true)
	return b.run[s.key:s.value]
}

// child is where element i leads to, and what the keys there must be.
func (b *branch) child(i int) (id uint64, keys bounds) {
	_, id, _ = branchSpan(b.run, i, b.size, 0, true)
	keys = bounds{low: b.key(i), high: b.high}
	if i+1 < int(b.count) {
		keys.high = b.key(i + 1)
	}
	return id, keys
}

// check returns what is wrong with the elements, the first of it.
func (b *branch) check() error {
	var last []byte
	behind := b.tableEnd()
	for i := range int(b.count) {
		s, _, wrong := branchSpan(b.run, i, b.size, behind, false)
		if wrong == "" {
			key := b.run[s.key:s.value]
			behind = s.end
			wrong = b.misplaced(i, last, key)
			last = key
		}
		if wrong != "" {
			return damage(b.id, "element %d %s", i, wrong)
		}
	}
	return nil
}

// children are the pages that a branch leads to, whatever is wrong with their keys; bad is
// told of that. End is where the last key ends in the file.
func (b *branch) children(bad func(error)) (ids []uint64, end int64) {
	count := b.trueCount(b.run[pageHeader:], true)
	if count != int(b.count) {
		bad(damage(b.id, "it names %d elements, and has room for %d", b.count, count))
	}
	for i := range count {
		s, id, wrong := branchSpan(b.run, i, b.size, 0, true)
		if wrong != "" {
			bad(damage(b.id, "element %d %s", i, wrong))
		} else {
			end = max(end, b.at+s.end)
		}
		ids = append(ids, id)
	}
	return ids, end
}
