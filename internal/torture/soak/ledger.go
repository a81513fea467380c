package soak

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// cell is what is known of one job of a round. It is as large as the round and no larger,
// however long the soak is.
type cell struct {
	flags    marks
	starts   uint8 // runs that began
	settled  uint8 // of those, runs that the queue said are over and count
	cuts     uint8 // and runs that do not: a stop released them, or a kill cut them off
	failures uint8 // runs that the queue said have failed
	returned uint8 // runs of which the handler returned nil
	snoozes  uint8
}

const cellWidth = 8

type marks uint16

const (
	begun    marks = 1 << iota // Enqueue was called
	accepted                   // it returned nil
	running                    // a run began, and the queue did not say yet how it ended
	done                       // the queue said that it succeeded
	skipped
	died
	revived
	deleted
	doubted // a kill came while Enqueue was under way
)

func (c cell) has(f marks) bool { return c.flags&f != 0 }

// ledger has the cells of a round, and what else was counted in it.
//
// What it knows it writes to its file at once, if it is to survive a kill: the operating
// system keeps what a process wrote before it was killed.
type ledger struct {
	file    *os.File
	durable bool

	mu     sync.Mutex
	round  int
	cells  []cell
	counts map[pawl.EventType]int
	ended  map[int]time.Time // when the queue said that an effect took place
	events int               // events
	err    error             // of the file
}

// openLedger opens the ledger of rounds of this many jobs in a file.
func openLedger(path string, size int) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{file: f, cells: make([]cell, size)}, nil
}

// begin begins a round. A durable one can be resumed by another process.
func (l *ledger) begin(round int, durable bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round, l.durable, l.events = round, durable, 0
	l.counts, l.ended = make(map[pawl.EventType]int), make(map[int]time.Time)
	clear(l.cells)
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	return l.file.Truncate(int64(len(l.cells) * cellWidth))
}

// resume takes up the round of a process that was killed: what was open then is cut off.
func (l *ledger) resume(round int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round, l.durable = round, true
	l.counts, l.ended = make(map[pawl.EventType]int), make(map[int]time.Time)
	b := make([]byte, len(l.cells)*cellWidth)
	if _, err := io.ReadFull(io.NewSectionReader(l.file, 0, int64(len(b))), b); err != nil {
		return err
	}
	for n := range l.cells {
		c := parseCell(b[n*cellWidth:])
		if c.has(running) {
			c.flags &^= running
			c.cuts++
		}
		if c.has(begun) && !c.has(accepted) {
			c.flags |= doubted
		}
		l.cells[n] = c
	}
	return nil
}

// change changes the cell of a job, and keeps it.
func (l *ledger) change(n int, fn func(c *cell)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.cells[n]
	fn(c)
	l.keep(n, n+1)
}

// changeAll is change for the jobs in a range.
func (l *ledger) changeAll(from, to int, fn func(n int, c *cell)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := from; n < to; n++ {
		fn(n, &l.cells[n])
	}
	l.keep(from, to)
}

// keep writes a range of cells to the file. The caller holds mu.
func (l *ledger) keep(from, to int) {
	if !l.durable {
		return
	}
	b := make([]byte, 0, (to-from)*cellWidth)
	for n := from; n < to; n++ {
		b = l.cells[n].append(b)
	}
	if _, err := l.file.WriteAt(b, int64(from*cellWidth)); err != nil && l.err == nil {
		l.err = err
	}
}

// current is the round, for who does not stop between two.
func (l *ledger) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.round
}

// cell is a copy.
func (l *ledger) cell(n int) cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cells[n]
}

func (c cell) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(c.flags))
	return append(b, c.starts, c.settled, c.cuts, c.failures, c.returned, c.snoozes)
}

func parseCell(b []byte) cell {
	return cell{marks(binary.BigEndian.Uint16(b)), b[2], b[3], b[4], b[5], b[6], b[7]}
}
