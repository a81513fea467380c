package pages

// branch is a branch page in memory whose elements are sound.
type branch struct {
	page
	run []byte
	bounds
}

// key returns the key of child i.
func (b *branch) key(i int) []byte {
	s, _, _ := branchSpan(b.run, i, b.size, 0, true)
	return b.run[s.key:s.value]
}

// child returns the page of element i, and the bounds of its keys.
func (b *branch) child(i int) (id uint64, keys bounds) {
	_, id, _ = branchSpan(b.run, i, b.size, 0, true)
	keys = bounds{low: b.key(i), high: b.high}
	if i+1 < int(b.count) {
		keys.high = b.key(i + 1)
	}
	return id, keys
}

// check returns the first damage of the elements.
func (b *branch) check() error {
	var last []byte
	prevEnd := b.tableEnd()
	for i := range int(b.count) {
		s, _, wrong := branchSpan(b.run, i, b.size, prevEnd, false)
		if wrong == "" {
			key := b.run[s.key:s.value]
			prevEnd = s.end
			wrong = b.misplaced(i, last, key)
			last = key
		}
		if wrong != "" {
			return damage(b.id, "element %d %s", i, wrong)
		}
	}
	return nil
}

// children returns the pages below a branch whose keys may be damaged, and reports damage to bad.
// end is where the last key ends in the file.
func (b *branch) children(bad func(error)) (ids []uint64, end int64) {
	count := b.trueCount(b.run[pageHeader:], true)
	if count != int(b.count) {
		bad(damage(b.id, "it has %d elements and room for %d", b.count, count))
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
