package bolt

import (
	"bytes"
	"fmt"
	"time"
)

// promoteDue moves up to portion jobs whose time has come to ready. It returns how
// many, and when the next one is due: zero when none waits for a time.
func (t *txn) promoteDue(portion int) (moved int, next time.Time) {
	moved = t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, t.now), portion)
	k, _ := t.delayed.Cursor().First()
	if len(k) < 1+timeWidth || k[0] != waitsForTime {
		return moved, time.Time{}
	}
	return moved, timeAt(k[1:])
}

// promoteRows moves up to portion rows of delayed to ready: those whose keys begin
// with prefix and, when last is given, are not behind it. It collects before it
// moves, since a cursor may skip rows under deletions.
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
			t.damage = append(t.damage, fmt.Errorf("row %x of bucket %s: %w", k, bucketDelayed, err))
			continue
		}
		moves = append(moves, move{k, row})
	}
	for _, m := range moves {
		t.promote(m.key, m.row)
	}
	return len(moves)
}
