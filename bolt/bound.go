package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ErrFull says that the jobs would exceed [Options.MaxBytes]. Nothing was stored. Retry the call once other
// jobs are done or deleted.
var ErrFull = driver.NewSentinel("full", "the file has no room for more jobs")

// leastBound is the smallest MaxBytes. An empty queue uses about a tenth of it.
const leastBound = 1 << 20

// jobRows is about how many bytes a job uses in the file besides its record and its payload.
const jobRows = 256

// bound keeps new jobs within Options.MaxBytes. Only the holder of the write transaction uses it.
type bound struct {
	max   int64     // 0 for none
	tx    *bbolt.Tx // the transaction that took room last
	taken int64     // bytes that it took
}

// take reserves room in a transaction, or returns ErrFull.
func (b *bound) take(tx *bbolt.Tx, bytes int64) error {
	if b == nil || b.max == 0 || bytes == 0 {
		return nil
	}
	if b.tx != tx {
		b.tx, b.taken = tx, 0
	}
	used := tx.Size() - unused(tx.DB()) + b.taken
	if used+bytes > b.max {
		return fmt.Errorf("%w: %d bytes are in use, the new jobs need %d, and MaxBytes is %d; run or delete jobs, or raise MaxBytes",
			ErrFull, used, bytes, b.max)
	}
	b.taken += bytes
	return nil
}

// unused returns the size of the pages in the list of free pages.
func unused(db *bbolt.DB) int64 {
	s := db.Stats()
	return int64(s.FreePageN+s.PendingPageN) * int64(db.Info().PageSize)
}

// sizeOf returns roughly how many bytes new jobs will use.
func sizeOf(jobs []newJob) (bytes int64) {
	for i := range jobs {
		if j := &jobs[i]; !j.existing && !j.dropped {
			bytes += int64(len(j.record)+len(j.payload)) + jobRows
		}
	}
	return bytes
}

func checkBound(max int64) error {
	if max != 0 && max < leastBound {
		return &pawl.InvalidError{Field: "MaxBytes", Reason: fmt.Sprintf("%d is less than %d bytes; 0 means no bound", max, leastBound)}
	}
	return nil
}
