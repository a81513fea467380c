package bolt

import (
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// Recovery says how the last process that had the file ended.
type Recovery struct {
	// Clean says that the last process closed the queue, or stored nothing, and that no job was leased. It is true for
	// a new file. In a database of the app ([Over]) it says only that no job was leased.
	Clean bool

	// Jobs is how many jobs were leased when the process ended. Each counts a crash, and is ready again, or dead
	// if it was cancelled or has reached [Options.MaxCrashes].
	Jobs int
}

// Recovery returns what [Open] or [Over] found. It never changes.
func (q *Queue) Recovery() Recovery { return q.recovery }

// takeOrphans takes back every lease in the file before the scheduler runs. The lock of the file proves that
// the process that held the leases is gone, so there is no need to wait until they expire. takeOrphans works in
// portions: a crash in between leaves the rest to the next Open, and counts no crash twice. On a full disk it
// uses smaller portions, for which the file may have enough free pages. It returns how many jobs were leased.
func (s *scheduler) takeOrphans() (jobs int, err error) {
	for portion, found := recoverPortion, 1; found > 0; {
		recovered := 0
		err := s.transact(func(t *txn) error {
			found = t.takeOrphans(portion)
			recovered = count(t.events, pawl.EventRecovered)
			return nil
		})
		switch {
		case errors.Is(err, ErrDisk) && portion > 1:
			portion /= 2
		case err != nil:
			return jobs, fmt.Errorf("take back the leases of the last process: %w", err)
		default:
			jobs += recovered
		}
	}
	if jobs > 0 {
		s.log.Warn("recovered jobs after unclean shutdown", "jobs", jobs)
	}
	return jobs, nil
}

func count(events []pawl.Event, what pawl.EventType) (n int) {
	for _, e := range events {
		if e.Type == what {
			n++
		}
	}
	return n
}

// takeOrphans takes back up to portion leases and returns how many rows it moved. It skips a lease that is too damaged
// to be moved, so that this lease does not keep all other jobs leased.
func (t *txn) takeOrphans(portion int) (found int) {
	type orphan struct {
		id  pawl.ID
		row leaseRow
	}
	var orphans []orphan
	c := t.leased.Cursor()
	for k, v := c.First(); k != nil && len(orphans) < portion; k, v = c.Next() {
		row, err := t.orphan(k, v)
		if err != nil {
			t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", k, bucketLeased, err))
			continue
		}
		orphans = append(orphans, orphan{pawl.ID(k), row})
	}
	for _, o := range orphans {
		t.crashed(o.id, o.row, pawl.EventRecovered)
	}
	// No job holds an idempotency key now. If a job is still blocked, the row of the key's holder was too damaged to
	// name the key.
	return len(orphans) + t.promoteRows([]byte{waitsForKey}, nil, portion)
}

// orphan reads a row of leased, as readLease does. If its row and its record are damaged, the job will
// become dead in the queue that the row seems to name.
func (t *txn) orphan(key, sealed []byte) (row leaseRow, err error) {
	if row, err = t.readLease(key, sealed); err != nil {
		return row, err
	}
	return row, t.checkLine(row.line)
}

// readLease reads a row of leased. It replaces a damaged row by what the job's record says, or else by
// the line that the row seems to name.
func (s *store) readLease(key, sealed []byte) (row leaseRow, err error) {
	if len(key) != len(pawl.ID{}) {
		return row, fmt.Errorf("%w: a key of %d bytes", pawl.ErrCorrupt, len(key))
	}
	if row, err = parseLeaseRow(key, sealed); err == nil {
		return row, nil
	}
	if j, recordErr := s.listed(pawl.ID(key)); recordErr == nil {
		row.flags, row.lane = j.flags(), laneOf(j.Envelope) // the rest is used only while the job is leased
		row.line, _, err = s.line(j.Envelope)
	} else if len(sealed) == leaseWidth+4 {
		row.line, err = lineAt(sealed[8:]), nil
	}
	return row, err
}

// checkLine returns an error if the rows of a line, its queue or its kind are damaged.
func (t *txn) checkLine(ln line) error {
	q, err := t.rowOf(ln.queue) // the row may be new
	if err == nil {
		_, _, err = t.number(q.name)
	}
	if err == nil {
		var kind string
		if kind, err = t.kindName(ln.kind); err == nil {
			_, _, err = t.kind(kind)
		}
	}
	if err == nil {
		_, err = t.rowOfLine(ln)
	}
	return err
}
