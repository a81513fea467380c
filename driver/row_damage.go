package driver

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// RowDamage returns what is wrong with a row of progress, of logs, or of counts of the throughput. Nothing else depends
// on such a row, so a salvage omits a damaged one. It returns nil for a row of another space.
func RowDamage(path [][]byte, key, value []byte) error {
	var tables []*Table
	for _, s := range []*Space{noteSpace, MeterSpace} {
		if len(path) > 0 && bytes.Equal(path[0], s.name) {
			tables = s.tables
		}
	}
	for _, t := range tables {
		if len(path) == 2 && bytes.Equal(path[1], t.name) {
			return rowDamage(t, key, value)
		}
	}
	if tables == nil {
		return nil
	}
	return fmt.Errorf("%s, key %x: %w: it is in no table", path[0], key, pawl.ErrCorrupt)
}

// SealDamage returns an error for a row of a space of pawl that does not match its checksum. Path is that of its bucket. It
// returns nil for a row that has no checksum: one of the app, or one without a value.
func SealDamage(path [][]byte, key, value []byte) error {
	if len(path) != 2 || len(value) == 0 || !bytes.HasPrefix(path[0], []byte("pawl.")) {
		return nil
	}
	_, err := Unseal(&Table{space: &Space{name: path[0]}, name: path[1]}, key, value)
	if errors.Is(err, pawl.ErrNewerFormat) {
		return nil
	}
	return err
}

func rowDamage(t *Table, key, value []byte) (err error) {
	switch {
	case t == tableProgress:
		err = parseNote(t, key, value, new(progressRow))
	case t == tableLogs:
		_, err = parseLog(key, value)
	case bytes.HasPrefix(key, []byte{'b'}):
		_, err = parseBuild(key, value)
	default:
		err = new(hourRow).parse(key, value)
	}
	return err
}

// CheckRows calls wrong for each row of progress, of logs, and of counts of the throughput that cannot be read.
func CheckRows(r Reader, wrong func(error)) {
	damaged := func(err error) {
		if err != nil {
			wrong(err)
		}
	}
	for _, t := range []*Table{tableProgress, tableLogs, tableMeter} {
		damaged(presentTable(r.Scan(t, Span{}, func(key, value []byte) bool {
			damaged(rowDamage(t, key, value))
			return true
		})))
	}
}
