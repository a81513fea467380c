package pages

import "sync/atomic"

// bitmap is a set of pages. Goroutines may add to it concurrently.
type bitmap []atomic.Uint64

func newBitmap(pages uint64) bitmap { return make(bitmap, (pages+63)/64) }

// add adds a page and reports whether it was new.
func (b bitmap) add(page uint64) bool {
	bit := uint64(1) << (page % 64)
	return b[page/64].Or(bit)&bit == 0
}

func (b bitmap) has(page uint64) bool { return b[page/64].Load()&(1<<(page%64)) != 0 }

// addRun adds a page and its overflow. It stops at the first page that is not new and returns it.
func (b bitmap) addRun(page uint64, overflow uint32) (twice uint64, ok bool) {
	for id := page; id <= page+uint64(overflow); id++ {
		if !b.add(id) {
			return id, false
		}
	}
	return 0, true
}
