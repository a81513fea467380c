package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/runnotes"
)

const (
	maxLogs      = 4  // attempts of a job whose logs are kept
	sweepPortion = 32 // rows whose jobs a store of notes looks up
)

// rowViewer is a queue whose rows can be read.
type rowViewer interface {
	ViewRows(ctx context.Context, fn func(Reader) error) error
}

// rowNotes is the [NoteStore] of a queue with mutations.
type rowNotes struct {
	queue rowViewer

	mu    sync.Mutex
	swept []byte // the last row of a log whose job was looked for
}

// StoreNotes implements [NoteStore].
func (s *rowNotes) StoreNotes(ctx context.Context, notes []runnotes.Notes, ended []pawl.ID) (running []pawl.ID, err error) {
	q, ok := s.queue.(interface {
		Mutate(ctx context.Context, m Mutation, size int) error
	})
	if !ok {
		return nil, fmt.Errorf("%w: its rows can only be read", pawl.ErrUnsupported)
	}
	size := 0
	for i := range notes {
		size += sizeOf(&notes[i])
	}
	s.mu.Lock()
	m := &noting{notes: notes, ended: ended, swept: s.swept}
	s.mu.Unlock()
	if err := q.Mutate(ctx, m, size); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.swept = m.sweptTo
	s.mu.Unlock()
	return m.running, nil
}

// ReadProgress implements [NoteStore]. A damaged row counts as none.
func (s *rowNotes) ReadProgress(ctx context.Context, ids ...pawl.ID) (all map[pawl.ID]pawl.Progress, err error) {
	err = s.queue.ViewRows(ctx, func(r Reader) error {
		all = make(map[pawl.ID]pawl.Progress)
		for _, id := range ids {
			row, err := readProgress(r, id)
			if err != nil && !errors.Is(err, pawl.ErrCorrupt) {
				return err
			}
			if row != nil && err == nil {
				all[id] = row.progress()
			}
		}
		return nil
	})
	return all, err
}

// ReadLogs implements [NoteStore].
func (s *rowNotes) ReadLogs(ctx context.Context, id pawl.ID) (logs []pawl.RunLog, err error) {
	err = s.queue.ViewRows(ctx, func(r Reader) (err error) {
		logs, err = readLogs(r, id)
		return err
	})
	return logs, err
}

// noting is the mutation that stores notes.
type noting struct {
	notes []runnotes.Notes
	ended []pawl.ID // whose rows go if the jobs are gone
	swept []byte

	// Set by Check.
	stored  []*runnotes.Notes
	gone    [][]byte // keys of logs
	lost    []pawl.ID
	running []pawl.ID // of ended, those that have not ended yet
	sweptTo []byte
}

// Check implements [Mutation].
func (m *noting) Check(ops Ops) error {
	m.stored, m.gone, m.lost, m.running = m.stored[:0], m.gone[:0], m.lost[:0], m.running[:0]
	for i := range m.notes {
		n := &m.notes[i]
		state, err := ops.State(n.ID)
		if err != nil && !errors.Is(err, pawl.ErrCorrupt) {
			return err
		}
		if state == "" {
			continue
		}
		m.stored = append(m.stored, n)
		if n.Log != nil {
			if err := m.outgrown(ops, n); err != nil {
				return err
			}
		}
	}
	for _, id := range m.ended {
		switch state, err := ops.State(id); {
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return err
		case state == "":
			if err := m.lose(ops, id); err != nil {
				return err
			}
		case state == pawl.Leased:
			m.running = append(m.running, id)
		}
	}
	return m.sweep(ops)
}

// outgrown finds the logs of a job that are too old once that of n is there.
func (m *noting) outgrown(r Reader, n *runnotes.Notes) error {
	var others [][]byte
	own := logKey(n.ID, n.Began)
	err := r.Scan(tableLogs, Span{Prefix: n.ID[:]}, func(key, _ []byte) bool {
		if !bytes.Equal(key, own) {
			others = append(others, bytes.Clone(key))
		}
		return true
	})
	if over := len(others) - (maxLogs - 1); over > 0 {
		m.gone = append(m.gone, others[:over]...)
	}
	return presentTable(err)
}

// lose marks the rows of a job to be removed.
func (m *noting) lose(r Reader, id pawl.ID) error {
	m.lost = append(m.lost, id)
	return presentTable(r.Scan(tableLogs, Span{Prefix: id[:]}, func(key, _ []byte) bool {
		m.gone = append(m.gone, bytes.Clone(key))
		return true
	}))
}

// sweep finds rows whose jobs are gone: those of jobs that were deleted, or that succeeded elsewhere.
// Each call looks at the next rows of both tables, and starts over after the last ones.
func (m *noting) sweep(ops Ops) error {
	var ids []pawl.ID
	m.sweptTo = nil
	for _, t := range []*Table{tableProgress, tableLogs} {
		rows, last := 0, []byte(nil)
		span := Span{Limit: sweepPortion}
		if len(m.swept) > 0 {
			span.From = After(m.swept)
		}
		err := ops.Scan(t, span, func(key, _ []byte) bool {
			if len(key) >= len(pawl.ID{}) {
				ids = append(ids, pawl.ID(key[:len(pawl.ID{})]))
			}
			rows, last = rows+1, bytes.Clone(key)
			return true
		})
		if presentTable(err) != nil {
			return err
		}
		if rows == sweepPortion && (m.sweptTo == nil || bytes.Compare(last, m.sweptTo) < 0) {
			m.sweptTo = last
		}
	}
	for _, id := range ids {
		if state, err := ops.State(id); err == nil && state == "" && !slices.Contains(m.lost, id) {
			if err := m.lose(ops, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// Apply implements [Mutation].
func (m *noting) Apply(w Writer) error {
	for _, key := range m.gone {
		if err := w.Delete(tableLogs, key); err != nil {
			return err
		}
	}
	for _, id := range m.lost {
		if err := w.Delete(tableProgress, id[:]); err != nil {
			return err
		}
	}
	for _, n := range m.stored {
		if err := putNotes(w, n); err != nil {
			return err
		}
	}
	return nil
}
