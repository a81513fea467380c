package bolt

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// How the file and its map grow. A commit that needs a larger map waits for every reader,
// so the map has room from the start; the file itself grows by little at a time.
const (
	leastMap    = 1 << 30
	leastGrowth = 1 << 20
	mostGrowth  = 64 << 20
)

// mapSize is how much of the address space to map for a file, 0 for no more than it has:
// Windows would make the file as large, and where an int has 32 bits there is little.
func mapSize(path string) int {
	if runtime.GOOS == "windows" || strconv.IntSize < 64 {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil {
		return leastMap // whoever opens the file tells the error
	}
	return max(leastMap, int(2*info.Size()))
}

// growBy sets by how much the file grows when the transaction needs more of it: an
// eighth, so that the sync which that takes is rare.
func growBy(tx *bbolt.Tx) {
	tx.DB().AllocSize = int(min(max(tx.Size()/8, leastGrowth), mostGrowth))
}

// readAheadFrom is the size in bytes from which a file is read ahead when it is opened.
const readAheadFrom = 4 << 20

// readAhead reads a file from beginning to end, until stop is called. The check of the pages,
// and bbolt where there is no list of free pages, visit nearly every page, in no order, and
// wait for each; reading ahead halves that time on a cold disk.
func readAhead(f io.ReaderAt) (stop func()) {
	var (
		stopped atomic.Bool
		reading sync.WaitGroup
	)
	reading.Go(func() {
		buf := make([]byte, 1<<20)
		for at := int64(0); !stopped.Load(); {
			n, err := f.ReadAt(buf, at)
			if at += int64(n); err != nil {
				return
			}
		}
	})
	return func() {
		stopped.Store(true)
		reading.Wait()
	}
}
