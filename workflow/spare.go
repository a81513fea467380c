package workflow

import (
	"encoding/binary"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run has room for two journals, 0 and 1. One is in use. The other is empty, or has rows
// that a Restart left to be removed. The first byte of a seq is the journal, and the rest
// numbers the entries from 1.
const journalShift = 24

// journalPrefix returns the prefix of the keys of a journal's entries and their values.
func journalPrefix(run pawl.ID, journal uint8) []byte {
	return append(append(make([]byte, 0, 17), run[:]...), journal)
}

// firstSeq is the seq before the first entry of a journal. In table blobs, the input has the
// seq before journal 0.
func firstSeq(journal uint8) uint32 { return uint32(journal) << journalShift }

// journalOf returns the journal of an entry.
func journalOf(seq uint32) uint8 { return uint8(seq >> journalShift) }

// ordinal returns the number of an entry in its journal.
func ordinal(seq uint32) uint32 { return seq & (1<<journalShift - 1) }

// spare returns the journal that is not in use.
func (r *runRow) spare() uint8 { return r.Journal ^ 1 }

// leftBehind reports whether a key is that of an entry, a value, or a publish count that a
// Restart left for removal.
func (r *runRow) leftBehind(t *driver.Table, key []byte) bool {
	if t == tablePublished {
		behind := key[len(pawl.ID{}):]
		return isCount(behind) && len(behind) > 1 && behind[1] == r.spare()
	}
	if t != tableSteps && t != tableBlobs || len(key) != len(pawl.ID{})+4 {
		return false
	}
	seq := binary.BigEndian.Uint32(key[len(pawl.ID{}):])
	return journalOf(seq) == r.spare() && seq != inputSeq
}

// hasSpare reports whether the journal that is not in use has rows to remove.
func (r rows) hasSpare(run pawl.ID, row *runRow) (bool, error) {
	if row.Restarts == 0 {
		return false, nil
	}
	prefix, first := journalPrefix(run, row.spare()), seqKey(run, firstSeq(row.spare())+1)
	for _, t := range [...]*driver.Table{tableSteps, tableBlobs} {
		if found, err := r.has(t, prefix, first); found || err != nil {
			return found, err
		}
	}
	return r.has(tablePublished, countPrefix(run, row.spare()), nil)
}

// clearSpare is the mutation that removes a portion of what a Restart left.
type clearSpare struct {
	lease *pawl.Lease
	run   pawl.ID

	row  *runRow
	more bool
}

// clearSpare removes what a Restart left of the previous journal. The run does this itself,
// before its function is called again: the Restart was durable without it, and a run that
// restarts often does not leave more than it removes.
func (x *execution) clearSpare() error {
	for c := (&clearSpare{lease: x.lease, run: x.run, more: true}); c.more; {
		if err := x.engine.queue.Mutate(x.ctx, c, requestBytes); err != nil {
			return err
		}
	}
	return nil
}

// Check requires the lease and reads which journal is in use.
func (c *clearSpare) Check(ops driver.Ops) (err error) {
	if c.row, err = rowsOf(ops).mustRun(c.run); err != nil {
		return err
	}
	return ops.Hold(c.lease)
}

// Apply removes a portion.
func (c *clearSpare) Apply(tx driver.Writer) error {
	left, spare, r := portionQuota(), c.row.spare(), rowsTo(tx)
	err := r.remove(journalPrefix(c.run, spare), seqKey(c.run, firstSeq(spare)+1), &left, tableSteps, tableBlobs)
	if err == nil {
		err = r.remove(countPrefix(c.run, spare), countPrefix(c.run, spare), &left, tablePublished)
	}
	c.more = left.spent()
	return err
}
