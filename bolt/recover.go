package bolt

import (
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// takeOrphans takes back every lease in the file, before the scheduler runs. The
// lock of the file proves that the process which held them is gone, so nobody
// waits for them to expire. It works in portions: a crash in between leaves the
// rest to the next Open, and counts no crash twice.
func (s *scheduler) takeOrphans() error {
	for found := recoverPortion; found == recoverPortion; {
		err := s.transact(func(t *txn) (err error) {
			found, err = t.takeOrphans(recoverPortion)
			return err
		})
		if err != nil {
			return fmt.Errorf("take back the leases of the last process: %w", err)
		}
	}
	return nil
}

// takeOrphans takes back up to portion leases and returns how many it found.
func (t *txn) takeOrphans(portion int) (found int, err error) {
	type orphan struct {
		id  pawl.ID
		row leaseRow
	}
	var orphans []orphan
	c := t.leased.Cursor()
	for k, v := c.First(); k != nil && len(orphans) < portion; k, v = c.Next() {
		if len(k) != len(pawl.ID{}) {
			return 0, fmt.Errorf("%w: row %x of bucket %s", pawl.ErrCorrupt, k, bucketLeased)
		}
		row, err := parseLeaseRow(k, v)
		if err != nil {
			if row, err = t.guessLease(pawl.ID(k)); err != nil {
				return 0, err
			}
		}
		orphans = append(orphans, orphan{pawl.ID(k), row})
	}
	for _, o := range orphans {
		t.crashed(o.id, o.row)
	}
	return len(orphans), nil
}

// guessLease replaces a damaged row of a lease by what the job's record says.
func (t *txn) guessLease(id pawl.ID) (leaseRow, error) {
	j, err := t.record(id)
	if err != nil {
		return leaseRow{}, fmt.Errorf("lease of job %s is damaged, and so is the job: %w", id, errors.Join(pawl.ErrCorrupt, err))
	}
	return leaseRow{queue: t.numberOf(j.Queue), flags: j.flags()}, t.err
}
