package soak

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// cell is the state of one job of a round in the ledger. The ledger grows with the round, not
// with the soak.
type cell struct {
	flags    marks
	starts   uint8 // attempts that began
	settled  uint8 // attempts that ended and count, according to the events
	cuts     uint8 // attempts that a stop released or a kill ended
	failures uint8 // attempts that failed, according to the events
	returned uint8 // attempts whose handler returned nil
	snoozes  uint8
}

const cellWidth = 8

type marks uint16

const (
	begun    marks = 1 << iota // Enqueue was called
	accepted                   // it returned nil
	running                    // an attempt started, without an event of its end
	done                       // an event reported success
	skipped
	died
	revived
	deleted
	doubted // a kill came during Enqueue
)

func (c cell) has(f marks) bool { return c.flags&f != 0 }

// ledger has the cells of a round and its other counts.
//
// A durable ledger writes each change to its file immediately. The system keeps the writes of
// a killed process.
type ledger struct {
	file    *os.File
	durable bool

	mu     sync.Mutex
	round  int
	cells  []cell
	counts map[pawl.EventType]int
	ended  map[int]time.Time // when an event reported an effect
	events int
	err    error // error of the file
}

// openLedger opens the ledger of rounds with size jobs in a file.
func openLedger(path string, size int) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{file: f, cells: make([]cell, size)}, nil
}

// begin starts a round. Another process can resume a durable round.
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

// resume continues the round of a killed process. The kill has ended its open attempts.
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

// change changes and keeps the cell of a job.
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

// current returns the round, for goroutines that run across rounds.
func (l *ledger) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.round
}

// cell returns a copy of a cell.
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
