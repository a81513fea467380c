package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// takeOrphans takes back every lease in the file, before the scheduler runs. The
// lock of the file proves that the process which held them is gone, so nobody
// waits for them to expire. It works in portions: a crash in between leaves the
// rest to the next Open, and counts no crash twice. A full disk gets smaller ones,
// which the free pages of the file may have room for.
func (s *scheduler) takeOrphans() error {
	for portion, found := recoverPortion, 1; found > 0; {
		err := s.transact(func(t *txn) (err error) {
			found, err = t.takeOrphans(portion)
			return err
		})
		switch {
		case errors.Is(err, ErrDisk) && portion > 1:
			portion /= 2
		case err != nil:
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
			t.damage = append(t.damage, fmt.Errorf("%w: row %x of bucket %s", pawl.ErrCorrupt, k, bucketLeased))
			continue
		}
		row, err := parseLeaseRow(k, v)
		if err != nil {
			if row, err = t.guessLease(pawl.ID(k), v); err != nil {
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

// guessLease replaces a damaged row of a lease by what the job's record says. When
// that is damaged too the job is about to die, in some queue: the one that the row
// seems to name, or else the first that counts a lease.
func (t *txn) guessLease(id pawl.ID, sealed []byte) (leaseRow, error) {
	if j, err := t.record(id); err == nil {
		return leaseRow{queue: t.numberOf(j.Queue), flags: j.flags()}, t.err
	}
	if len(sealed) == leaseWidth+4 {
		n := queueNumber(binary.BigEndian.Uint32(sealed[8:]))
		if row, err := t.queue(n); err == nil && row.counts.Leased > 0 {
			return leaseRow{queue: n}, nil
		}
	}
	row, found := leaseRow{}, errors.New("found")
	err := t.eachQueue(func(n queueNumber, q *queueRow) error {
		if q.counts.Leased == 0 {
			return nil
		}
		row.queue = n
		return found
	})
	if err != found {
		return row, fmt.Errorf("%w: job %s is damaged, its lease too, and no queue counts a lease", pawl.ErrCorrupt, id)
	}
	return row, nil
}
