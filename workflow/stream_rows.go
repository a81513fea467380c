package workflow

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// streamRow is the row of a stream: which items it has.
type streamRow struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	First, Last uint64 // numbers of the first item that is kept, and of the last; Last is First-1 if there is none
	Bytes       int64  // size of the rows of its items, with their keys
}

// sound reports whether an engine would write the row.
func (s *streamRow) sound() bool {
	return s.First >= 1 && s.First <= s.Last && s.Last < maxCount && s.Last-s.First < MaxStream && s.Bytes > 0
}

// parseStream reads the row of a stream. Name is its key without the run.
func parseStream(name, content []byte) (s streamRow, err error) {
	if err = driver.DecodePayload(content, &s); err != nil || !s.sound() {
		return streamRow{}, fmt.Errorf("%w: the row of stream %q", pawl.ErrCorrupt, name)
	}
	return s, nil
}

// itemRow is the row of one item. Its key has the form of the key of a signal, with the name
// of the stream.
type itemRow struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Value   []byte // as the codec returned it
	At      int64
	Step    string
	Attempt uint64
}

// parseItem returns a copy of an item, by the end of its key.
func parseItem(number, content []byte) (item Item[[]byte], err error) {
	var row itemRow
	if err = driver.DecodePayload(content, &row); err != nil || len(number) != 8 || len(row.Value) == 0 {
		return item, fmt.Errorf("%w: item %x of a stream", pawl.ErrCorrupt, number)
	}
	return Item[[]byte]{N: binary.BigEndian.Uint64(number), At: timeOf(row.At), Value: row.Value, Step: row.Step, Attempt: row.Attempt}, nil
}

// maxStreamBytes limits the rows of the items of a stream, with their keys.
const maxStreamBytes = 8 << 20

// sealBytes is how much longer a sealed value is than its content.
const sealBytes = 1 + 4

// rowBytes returns the size of a row by its key and its content.
func rowBytes(key, content []byte) int { return len(key) + len(content) + sealBytes }

// findStream returns the row of a stream, or a new one if the run may have another stream.
func (r rows) findStream(run pawl.ID, name string) (s streamRow, err error) {
	s, others := streamRow{First: 1}, 0
	own := runAnd(run, name)
	err = r.each(tableStreams, run[:], func(key, content []byte, damage error) (err error) {
		switch {
		case !bytes.Equal(key, own):
			others++
		case damage != nil:
			return damage
		default:
			s, err = parseStream(key[len(run):], content)
		}
		return err
	})
	if err != nil || s.Last > 0 {
		return s, err
	}
	prefix := signalsOf(run, name)
	switch found, err := r.has(tableItems, prefix, prefix); {
	case err != nil:
		return s, err
	case found: // a new stream would overwrite them
		return s, fmt.Errorf("%w: run %s: stream %q has items and no row", pawl.ErrCorrupt, run, name)
	case others >= MaxStreams:
		return s, fmt.Errorf("the run has %d others: %w", others, ErrTooMany)
	}
	return s, nil
}

// putItem stores an item at the end of a stream, which loses its oldest items if it is full.
func (r rows) putItem(run pawl.ID, name string, s streamRow, item *itemRow) error {
	prefix, key := signalsOf(run, name), signalKey(run, name, s.Last+1)
	content, err := driver.EncodePayload(item)
	if err != nil {
		return err
	}
	size := int64(rowBytes(key, content))
	for s.Last+1-s.First >= MaxStream || s.Bytes+size > maxStreamBytes { // again if the oldest items are small
		left, all := portionQuota(), portionQuota()
		if err := r.remove(prefix, prefix, &left, tableItems); err != nil {
			return err
		}
		if left == all {
			return fmt.Errorf("%w: run %s: stream %q has fewer items than its row says", pawl.ErrCorrupt, run, name)
		}
		s.First += uint64(all.rows - left.rows)
		s.Bytes -= int64(all.bytes - left.bytes)
	}
	if err := r.put(tableItems, key, content); err != nil {
		return err
	}
	s.Last, s.Bytes = s.Last+1, s.Bytes+size
	if content, err = driver.EncodePayload(&s); err != nil {
		return err
	}
	return r.put(tableStreams, runAnd(run, name), content)
}
