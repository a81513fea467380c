package dbfile

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// Growth of the file and its map. A commit that needs a larger map waits for every reader, so
// the map has room from the start. The file itself grows in small steps.
const (
	leastMap    = 1 << 30
	leastGrowth = 1 << 20
	mostGrowth  = 64 << 20
)

// MapSize returns how much address space to map for a file, or 0 for the size of the file.
// Windows would enlarge the file to the map, and 32-bit systems have little address space.
func MapSize(path string) int {
	if runtime.GOOS == "windows" || strconv.IntSize < 64 {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil {
		return leastMap // opening the file reports the error
	}
	return max(leastMap, int(2*info.Size()))
}

// GrowBy sets how much the file grows when the transaction needs more space: an eighth, so that
// the sync after each growth is rare.
func GrowBy(tx *bbolt.Tx) {
	tx.DB().AllocSize = int(min(max(tx.Size()/8, leastGrowth), mostGrowth))
}

// readAheadFrom is the size in bytes from which a file is read ahead when it is opened.
const readAheadFrom = 4 << 20

// readAhead reads a file from start to end, until stop is called. The page check, and bbolt if
// there is no list of free pages, visit nearly every page in no particular order and wait for
// each one. Reading ahead halves that time on a cold disk.
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
