package bolt

import (
	"bytes"
	"fmt"
)

// promoteDue moves up to portion due jobs to ready, and returns how many it moved.
func (t *txn) promoteDue(portion int) int {
	return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, t.now), portion)
}

// promoteRows moves up to portion rows from delayed to ready: those with keys that have the
// prefix and, if last is not nil, are at most last. It collects the rows before it moves them,
// since a cursor may skip rows after deletions.
func (t *txn) promoteRows(prefix, last []byte, portion int) int {
	type move struct {
		key []byte
		row delayedRow
	}
	var moves []move
	c := t.delayed.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(moves) < portion; k, v = c.Next() {
		if last != nil && bytes.Compare(k[:min(len(k), len(last))], last) > 0 {
			break
		}
		row, err := parseDelayedRow(k, v)
		if err != nil {
			t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", k, bucketDelayed, err))
			continue
		}
		moves = append(moves, move{k, row})
	}
	for _, m := range moves {
		t.promote(m.key, m.row)
	}
	return len(moves)
}
