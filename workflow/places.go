package workflow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run of a flow with [MaxOpen] or [MaxOpenPerKey] needs a place for each of these limits, first of its key
// and then of its flow. It has its places from its start until its end. While there is none, it waits in the
// line of the places that it lacks, and its job is delayed. The commit that ends a run gives its places to the
// first runs in the lines. So nobody counts: the runs that have a place are rows.

// places are the changes of places in one mutation. Check finds them, and Apply writes them.
type places struct {
	limits openLimits
	read   int                 // how many runs in line are read, lineRead if zero; so many may have left their places
	rows   map[pawl.ID]*runRow // rows of other runs that the mutation changes
	lots   []*lot
}

// lot is all places of a flow or a key, with their line.
type lot struct {
	head   []byte
	limit  int
	taken  int // as many as matter
	number uint64
	line   []waiter // the first runs in line
	last   []byte   // the last key of the line that was read
	more   bool     // the line may be longer

	known, changed bool // the head
	puts           []put
	deletes        [][]byte
}

// waiter is a run in line.
type waiter struct {
	key []byte
	run pawl.ID
}

// lineRead is how many runs in line are read at once: more than one, since some may wait no more, or move to
// another line.
const lineRead = 8

// lot reads the places of a kind that a run may have.
func (p *places) lot(r rows, row *runRow, kind placeKind) (*lot, error) {
	head, limit := row.placesKey(kind), p.limits.of(kind)
	for _, l := range p.lots {
		if bytes.Equal(l.head, head) {
			return l, nil
		}
	}
	l := &lot{head: head, limit: limit}
	last, err := r.get(tablePlaces, head)
	if err != nil && !errors.Is(err, pawl.ErrCorrupt) { // the next number is found without it
		return nil, err
	}
	l.known = last != nil
	l.number, _ = binary.Uvarint(last)
	if l.taken, err = r.count(tablePlaces, p.takenSpan(head, limit)); err != nil {
		return nil, err
	}
	err = p.readLine(r, l)
	if l.more && !l.known && err == nil { // damage
		err = present(r.Scan(tablePlaces, driver.Span{Prefix: p.lineSpan(head).Prefix, Reverse: true, Limit: 1}, func(key, _ []byte) bool {
			l.number = max(l.number, number(key))
			return true
		}))
	}
	p.lots = append(p.lots, l)
	return l, err
}

// readLine reads the next runs in line.
func (p *places) readLine(r rows, l *lot) error {
	span, n := p.lineSpan(l.head), 0
	if l.last != nil {
		span.From = driver.After(bytes.Clone(l.last))
	}
	err := r.span(tablePlaces, span, func(key, content []byte, damage error) error {
		w := waiter{key: bytes.Clone(key)}
		if damage == nil && len(content) == len(w.run) {
			w.run = pawl.ID(content)
		}
		l.line, l.last = append(l.line, w), w.key
		l.number = max(l.number, number(key))
		n++
		return nil
	})
	l.more = n == span.Limit
	return err
}

// takenSpan returns the rows of the places that are taken, up to one more than the limit and than those that the
// mutation frees.
func (p *places) takenSpan(head []byte, limit int) driver.Span {
	return driver.Span{Prefix: append(slices.Clip(head), placeTaken), Limit: limit + 2 + p.read}
}

func (p *places) lineSpan(head []byte) driver.Span {
	return driver.Span{Prefix: append(slices.Clip(head), placeInLine), Limit: max(p.read, lineRead)}
}

// count returns how many rows a span has, whatever their content.
func (r rows) count(t *driver.Table, s driver.Span) (n int, err error) {
	err = present(r.Scan(t, s, func(_, _ []byte) bool { n++; return true }))
	return n, err
}

func (l *lot) free() bool { return l.limit == 0 || l.taken < l.limit }

// needs returns the places that a run needs and lacks, in the order in which it takes them.
func (l openLimits) needs(row *runRow) (kinds []placeKind) {
	if l.key > 0 && row.Key != "" && row.Places&placeOfKey == 0 {
		kinds = append(kinds, placeOfKey)
	}
	if l.flow > 0 && row.Places&placeOfFlow == 0 {
		kinds = append(kinds, placeOfFlow)
	}
	return kinds
}

// take gives a run the places that it lacks, or a place in line for the first that is not free. It changes
// the row, and reports whether the run has all places.
func (p *places) take(r rows, run pawl.ID, row *runRow) (all bool, err error) {
	for _, kind := range p.limits.needs(row) {
		l, err := p.lot(r, row, kind)
		if err != nil {
			return false, err
		}
		if !l.free() {
			return false, p.wait(r, l, run, row, kind)
		}
		l.leaveLine(row, kind)
		l.taken++
		l.put(takenKey(l.head, run), nil)
		row.Places |= kind
	}
	return true, p.leaveLine(r, row) // its flow has no such limit any more
}

// wait gives the run a place in line, unless it has it. A run is in one line at a time.
func (p *places) wait(r rows, l *lot, run pawl.ID, row *runRow, kind placeKind) error {
	if row.Line != kind {
		if err := p.leaveLine(r, row); err != nil {
			return err
		}
		l.number++
		row.Line, row.Number = kind, l.number
		l.line, l.changed = append(l.line, waiter{lineKey(l.head, l.number), run}), true
	}
	l.put(lineKey(l.head, row.Number), run[:]) // damage may have removed it
	row.becomes(Waiting)
	return nil
}

// becomes sets the status, unless the run is blocked.
func (row *runRow) becomes(s Status) {
	if row.Status != Blocked {
		row.Status = s
	}
}

// leaveLine removes the run from the line in which it is, if any.
func (p *places) leaveLine(r rows, row *runRow) error {
	if row.Line == 0 {
		return nil
	}
	l, err := p.lot(r, row, row.Line)
	if err == nil {
		l.leaveLine(row, row.Line)
	}
	return err
}

// leaveLine removes the run from the line.
func (l *lot) leaveLine(row *runRow, kind placeKind) {
	if row.Line != kind {
		return
	}
	key := lineKey(l.head, row.Number)
	l.line = slices.DeleteFunc(l.line, func(w waiter) bool { return bytes.Equal(w.key, key) })
	l.delete(key)
	row.Line, row.Number = 0, 0
}

// leave takes the places of a run that ends, and gives them to the runs that wait for them.
func (p *places) leave(ops driver.Ops, r rows, run pawl.ID, row *runRow) error {
	for _, kind := range [...]placeKind{placeOfFlow, placeOfKey} {
		if row.Line != kind && row.Places&kind == 0 {
			continue
		}
		l, err := p.lot(r, row, kind)
		if err != nil {
			return err
		}
		l.leaveLine(row, kind)
		if row.Places&kind != 0 {
			row.Places &^= kind
			if err := l.vacate(r, run); err != nil {
				return err
			}
		}
		if _, err := p.give(ops, r, l, kind); err != nil {
			return err
		}
	}
	return nil
}

// vacate frees the place of a run, unless damage has.
func (l *lot) vacate(r rows, run pawl.ID) error {
	key := takenKey(l.head, run)
	there, err := r.Get(tablePlaces, key)
	if there != nil && err == nil {
		l.taken--
		l.delete(key)
	}
	return present(err)
}

// give gives a free place to the first run in line. It returns false if there is no place, or no run. A run whose
// key has got a limit since takes no place of its flow before it has one of its key: it moves to that line.
func (p *places) give(ops driver.Ops, r rows, l *lot, kind placeKind) (bool, error) {
	for l.free() {
		if len(l.line) == 0 {
			if !l.more || p.read > 0 { // the next portion is for another mutation
				break
			}
			if err := p.readLine(r, l); err != nil {
				return false, err
			}
			continue
		}
		w := l.line[0]
		row, err := p.row(r, w.run)
		switch {
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return false, err
		case err != nil || row == nil || !row.open() || row.Line != kind || !bytes.Equal(w.key, lineKey(l.head, row.Number)):
			l.line = l.line[1:] // damage left it
			l.delete(w.key)
			continue
		}
		if p.rows == nil {
			p.rows = make(map[pawl.ID]*runRow)
		}
		p.rows[w.run] = row
		switch all, err := p.take(r, w.run, row); {
		case err != nil:
			return false, err
		case all:
			row.becomes(Running)
			return true, p.begin(ops, w.run, row)
		case row.Places&kind != 0:
			return true, nil
		}
	}
	return false, nil
}

// row reads the row of a run, or returns that which the mutation changes.
func (p *places) row(r rows, run pawl.ID) (*runRow, error) {
	if row := p.rows[run]; row != nil {
		return row, nil
	}
	return r.run(run)
}

// begin makes the job of a run ready that got its last place. One that is being cancelled is ready already, and a
// paused or blocked one waits for its Resume. A job that is gone, or damaged, is for an operator.
func (p *places) begin(ops driver.Ops, run pawl.ID, row *runRow) error {
	if row.Cancel != "" || row.Terminate != "" || row.Paused || row.Status == Blocked {
		return nil
	}
	state, err := ops.State(run)
	if errors.Is(err, pawl.ErrCorrupt) {
		return nil
	}
	if err == nil && state == pawl.Delayed {
		err = ops.RunNow(run)
	}
	return err
}

func (l *lot) put(key, content []byte) {
	l.deletes = slices.DeleteFunc(l.deletes, func(k []byte) bool { return bytes.Equal(k, key) })
	l.puts = append(l.puts, put{tablePlaces, key, content})
}

func (l *lot) delete(key []byte) {
	l.puts = slices.DeleteFunc(l.puts, func(p put) bool { return bytes.Equal(p.key, key) })
	l.deletes = append(l.deletes, key)
}

// apply writes the changes, without the rows of runs.
func (p *places) apply(r rows) error {
	for _, l := range p.lots {
		for _, key := range l.deletes {
			if err := r.delete(tablePlaces, key); err != nil {
				return err
			}
		}
		for _, each := range l.puts {
			if err := r.put(tablePlaces, each.key, each.value); err != nil {
				return err
			}
		}
		if err := l.applyHead(r); err != nil {
			return err
		}
	}
	return nil
}

// applyHead writes the head, or removes it with the last row.
func (l *lot) applyHead(r rows) error {
	switch empty := l.taken == 0 && len(l.line) == 0 && !l.more; {
	case empty && l.known:
		return r.delete(tablePlaces, l.head)
	case !empty && (l.changed || !l.known):
		return r.put(tablePlaces, l.head, binary.AppendUvarint(nil, l.number))
	}
	return nil
}
