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

// The tables of notes, in docs/internals/format.md. Their rows belong to no mutation: a run whose job is
// elsewhere by now may still write its own.
var (
	noteSpace     = NewSpace("pawl.notes")
	tableProgress = noteSpace.Index("progress")
	tableLogs     = noteSpace.Index("logs")
)

const (
	maxLogs      = 4       // runs of a job whose logs are kept
	notesPortion = 1 << 20 // bytes of a mutation
	sweepPortion = 32      // rows whose jobs a store of notes looks for
)

// Notes are the notes of the runs of a worker: collected in memory, and stored with the jobs. A nil
// Notes collects nothing.
type Notes struct {
	queue noteQueue
	runs  *runnotes.Runs

	mu    sync.Mutex
	ended map[pawl.ID]bool // jobs that were to succeed, whose rows go with them
	swept []byte           // the last row of a log whose job was looked for
}

// noteQueue is a queue that stores notes.
type noteQueue interface {
	Mutate(ctx context.Context, m Mutation, size int) error
}

// NewNotes returns where the runs of a worker note what they say of themselves. It is nil for a queue
// without [pawl.RunNotes].
func NewNotes(q pawl.Queue) *Notes {
	able, declares := q.(Able)
	mutator, stores := q.(noteQueue)
	if !declares || !stores || able.Abilities()&pawl.RunNotes == 0 {
		return nil
	}
	return &Notes{queue: mutator, runs: runnotes.New(), ended: make(map[pawl.ID]bool)}
}

// Noted returns a channel that receives after a run noted something. It is nil for nil Notes.
func (n *Notes) Noted() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.runs.Noted()
}

// collected returns the collection for the context of a run.
func (n *Notes) collected() *runnotes.Runs {
	if n == nil {
		return nil
	}
	return n.runs
}

// End is called when a handler has returned, before its job is settled. It stores the log of the run, unless
// the job is to leave no record. It does nothing for a run that noted nothing.
func (n *Notes) End(ctx context.Context, l *pawl.Lease, leavesRecord bool) error {
	if n == nil {
		return nil
	}
	note, log, stored := n.runs.End(l.ID, l.Started)
	switch {
	case log && leavesRecord:
		return n.mutate(ctx, &noting{notes: []runnotes.Notes{note}})
	case stored && !leavesRecord:
		n.mu.Lock()
		n.ended[l.ID] = true
		n.mu.Unlock()
		n.runs.Wake()
	}
	return nil
}

// Store stores what was noted since the last call, in one commit unless it has more than a mebibyte. It
// also removes the rows of jobs that are gone.
func (n *Notes) Store(ctx context.Context) error {
	if n == nil {
		return nil
	}
	notes := n.runs.Take()
	n.mu.Lock()
	none := len(notes)+len(n.ended) == 0
	n.mu.Unlock()
	if none {
		return nil
	}
	for from := 0; ; {
		to, size := from, 0
		for to < len(notes) && (to == from || size+sizeOf(&notes[to]) <= notesPortion) {
			size += sizeOf(&notes[to])
			to++
		}
		m := &noting{notes: notes[from:to]}
		if to == len(notes) {
			n.mu.Lock()
			m.swept, m.ended = n.swept, make([]pawl.ID, 0, len(n.ended))
			for id := range n.ended {
				m.ended = append(m.ended, id)
			}
			n.mu.Unlock()
		}
		if err := n.mutate(ctx, m); err != nil {
			n.runs.Again(notes[from:])
			return err
		}
		if from = to; from >= len(notes) {
			n.settle(m)
			return nil
		}
	}
}

// settle notes what the last mutation of a store did.
func (n *Notes) settle(m *noting) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.swept = m.sweptTo
	for _, id := range m.ended {
		if !slices.Contains(m.running, id) {
			delete(n.ended, id)
		}
	}
	if len(n.ended) > 0 {
		n.runs.Wake()
	}
}

func (n *Notes) mutate(ctx context.Context, m *noting) error {
	size := 0
	for i := range m.notes {
		size += sizeOf(&m.notes[i])
	}
	if err := n.queue.Mutate(ctx, m, size); err != nil {
		return fmt.Errorf("store progress and logs: %w", err)
	}
	return nil
}

func sizeOf(n *runnotes.Notes) int {
	size := 200
	if n.Log != nil {
		size += len(n.Log.Head) + len(n.Log.Tail)
	}
	return size
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

// lose has the rows of a job go.
func (m *noting) lose(r Reader, id pawl.ID) error {
	m.lost = append(m.lost, id)
	return presentTable(r.Scan(tableLogs, Span{Prefix: id[:]}, func(key, _ []byte) bool {
		m.gone = append(m.gone, bytes.Clone(key))
		return true
	}))
}

// sweep finds rows whose jobs are gone: those of jobs that were deleted, or that succeeded elsewhere.
// Each call looks at the next rows of both tables, and after the last ones the first.
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
