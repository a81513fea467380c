package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/runnotes"
)

// The tables of notes, in docs/internals/format.md. Their rows belong to no mutation: an attempt that has lost
// its job may still write its own.
var (
	noteSpace     = NewSpace("pawl.notes")
	tableProgress = noteSpace.Index("progress")
	tableLogs     = noteSpace.Index("logs")
)

// progressRow is a progress as it is stored.
type progressRow struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Done, Total int64
	Text        string
	At, Began   int64 // nanoseconds since 1970
}

// logRow is the log of an attempt as it is stored.
type logRow struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Attempt    int
	Head, Tail []byte
	Dropped    int64
}

func logKey(id pawl.ID, began time.Time) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(id[:]), uint64(began.UnixNano()))
}

// putNotes stores the notes of an attempt. Two stores of one worker may overtake each other, so an older
// one changes nothing.
func putNotes(w Writer, n *runnotes.Notes) error {
	if n.Log != nil {
		key := logKey(n.ID, n.Began)
		row := logRow{Attempt: n.Attempt, Head: n.Log.Head, Tail: n.Log.Tail, Dropped: n.Log.Dropped}
		value, err := w.Get(tableLogs, key)
		if presentTable(err) != nil {
			return err
		}
		var was logRow
		if value == nil || parseNote(tableLogs, key, value, &was) != nil || was.length() < row.length() {
			if err := putNote(w, tableLogs, key, row); err != nil {
				return err
			}
		}
	}
	if n.Progress == nil {
		return nil
	}
	p, began := n.Progress, n.Began.UnixNano()
	row := progressRow{Done: p.Done, Total: p.Total, Text: p.Text, At: p.At.UnixNano(), Began: began}
	if was, err := readProgress(w, n.ID); err == nil && was != nil && (was.Began > began || was.Began == began && was.At > row.At) {
		return nil
	}
	return putNote(w, tableProgress, n.ID[:], row)
}

// length returns how many bytes were logged.
func (r *logRow) length() int64 { return int64(len(r.Head)+len(r.Tail)) + r.Dropped }

func putNote(w Writer, t *Table, key []byte, row any) error {
	content, err := EncodePayload(row)
	if err != nil {
		return err
	}
	return w.Put(t, bytes.Clone(key), Seal(t, key, content))
}

func parseNote(t *Table, key, value []byte, row any) error {
	content, err := Unseal(t, key, value)
	if err == nil {
		if err = DecodePayload(content, row); err != nil {
			err = fmt.Errorf("table %s of %s, key %x: %w: %v", t, noteSpace.name, key, pawl.ErrCorrupt, err)
		}
	}
	return err
}

func readProgress(r Reader, id pawl.ID) (*progressRow, error) {
	value, err := r.Get(tableProgress, id[:])
	if value == nil || err != nil {
		return nil, presentTable(err)
	}
	row := new(progressRow)
	return row, parseNote(tableProgress, id[:], value, row)
}

// progress returns the progress of a row.
func (r *progressRow) progress() pawl.Progress {
	return pawl.Progress{Done: r.Done, Total: r.Total, Text: r.Text, At: time.Unix(0, r.At)}
}

// readLogs returns what is kept of the logs of the attempts of a job, the oldest first.
func readLogs(r Reader, id pawl.ID) (logs []pawl.RunLog, err error) {
	scan := r.Scan(tableLogs, Span{Prefix: id[:]}, func(key, value []byte) bool {
		var l pawl.RunLog
		l, err = parseLog(key, value)
		logs = append(logs, l)
		return err == nil
	})
	return logs, errors.Join(err, presentTable(scan))
}

func parseLog(key, value []byte) (l pawl.RunLog, err error) {
	var row logRow
	if err = parseNote(tableLogs, key, value, &row); err == nil && len(key) != len(pawl.ID{})+8 {
		err = fmt.Errorf("table %s of %s, key %x: %w: it has another length", tableLogs, noteSpace.name, key, pawl.ErrCorrupt)
	}
	if err != nil {
		return l, err
	}
	began := int64(binary.BigEndian.Uint64(key[len(pawl.ID{}):]))
	return pawl.RunLog{Began: time.Unix(0, began), Attempt: row.Attempt, Head: string(row.Head), Tail: string(row.Tail), Dropped: row.Dropped}, nil
}
