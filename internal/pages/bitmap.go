package pages

import "sync/atomic"

// bitmap is a set of pages. Several goroutines may add to it.
type bitmap []atomic.Uint64

func newBitmap(pages uint64) bitmap { return make(bitmap, (pages+63)/64) }

// add puts a page into the set and reports whether it was not there.
func (b bitmap) add(page uint64) bool {
	bit := uint64(1) << (page % 64)
	return b[page/64].Or(bit)&bit == 0
}

func (b bitmap) has(page uint64) bool { return b[page/64].Load()&(1<<(page%64)) != 0 }

// addRun adds a page with its overflow, and returns the first page that was there already.
func (b bitmap) addRun(page uint64, overflow uint32) (twice uint64, ok bool) {
	for id := page; id <= page+uint64(overflow); id++ {
		if !b.add(id) {
			return id, false
		}
	}
	return 0, true
}
