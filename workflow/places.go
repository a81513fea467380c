package workflow

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run of a flow with [MaxOpen] or [MaxOpenPerKey] needs a place for each of these limits, first of its key
// and then of its flow. It keeps its places from its start until its end. While no place is free, it waits in
// the line for the place that it lacks, and its job is delayed. The commit that ends a run gives its places to
// the first runs in the lines. No counter is needed: each run that has a place has a row.

// places are the changes of places in one mutation. Check finds them, and Apply writes them.
type places struct {
	limits openLimits
	now    time.Time
	self   pawl.ID             // the run of the mutation, if its job exists only after it or has a lease
	read   int                 // how many runs in line are read, lineRead if zero; the mutation frees at most this many places
	rows   map[pawl.ID]*runRow // rows of other runs that the mutation changes
	looked map[pawl.ID]*runRow // rows of other runs that were read
	woken  map[pawl.ID]bool    // runs whose jobs the mutation makes ready
	lots   []*lot
	turn   time.Time // when the run of the mutation may begin, if it waits
}

// lot is all places of a flow or a key, with their line and their rate.
type lot struct {
	head   []byte
	kind   placeKind
	limit  int // 0 for none
	taken  int // places taken, counted only as far as it matters
	pace   driver.Pace
	tat    time.Time // the time until which the starts so far use up the rate
	now    time.Time
	number uint64
	line   []waiter // the first runs in line
	last   []byte   // the last key of the line that was read
	more   bool     // the line may be longer

	known, changed bool // the head is stored; the head changed
	vacated        bool // a run left the line or its place, or was moved here, so rouse looks at the first run in line
	setBack        bool // the clock was set back
	puts           []put
	deletes        [][]byte
}

// waiter is a run in line.
type waiter struct {
	key []byte
	run pawl.ID
}

// lineRead is how many runs in line are read together: more than one, since some may no longer wait, or move to
// another line. It is also how many runs may begin together under a rate.
const lineRead = 8

// lot reads the places of a kind that a run may have.
func (p *places) lot(r rows, row *runRow, kind placeKind) (*lot, error) {
	head := row.placesKey(kind)
	for _, l := range p.lots {
		if bytes.Equal(l.head, head) {
			return l, nil
		}
	}
	l := &lot{head: head, kind: kind, limit: p.limits.of(kind), pace: p.limits.pace(kind), now: p.now}
	last, err := r.get(tablePlaces, head)
	if err != nil && !errors.Is(err, pawl.ErrCorrupt) { // the next number can be found without the head
		return nil, err
	}
	l.known = last != nil
	l.number, l.tat = parsePlacesHead(last)
	if err != nil || l.rated() && l.tat.After(l.pace.Last(p.now)) { // damage, or the clock was set back
		l.tat, l.changed, l.setBack = l.pace.Last(p.now), true, true
	}
	if l.taken, err = r.count(tablePlaces, p.takenSpan(head, l.limit)); err != nil {
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

// takenSpan returns the span of the rows of taken places. It is limited to one row more than the sum of the limit
// and the places that the mutation frees.
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

// take gives a run the places that it lacks, or a number in the line for the first one that is not free. It changes
// the row, and reports whether the run may begin. A run that a rate limits stays in its lines until [places.begin].
func (p *places) take(ops driver.Ops, r rows, run pawl.ID, row *runRow) (all bool, err error) {
	kinds := p.limits.needs(row)
	if err := p.leaveLines(r, row, kinds...); err != nil { // its flow no longer has such a limit
		return false, err
	}
	row.Due = 0
	for i, kind := range kinds {
		l, err := p.lot(r, row, kind)
		if err != nil {
			return false, err
		}
		if !l.rated() && l.free() {
			l.leaveLine(row)
			l.occupy(run, row)
			continue
		}
		position := l.join(run, row)
		if l.rated() && !l.admits(position, row) && (l.setBack || l.admits(1, row)) { // the runs ahead may be unable to begin
			if err := p.call(ops, r, l, run); err != nil {
				return false, err
			}
			position = l.join(run, row)
		}
		if l.rated() && l.admits(position, row) {
			row.Due = unixNano(p.now)
			continue
		}
		if err := p.wait(r, l, position, run, row); err != nil {
			return false, err
		}
		return false, p.leaveLines(r, row, kinds[:i+1]...)
	}
	return true, nil
}

// occupy gives the run a place.
func (l *lot) occupy(run pawl.ID, row *runRow) {
	l.taken++
	l.put(takenKey(l.head, run), nil)
	row.Places |= l.kind
}

// join gives the run a number in line, unless it has one. It returns the position of the run in line, or a
// slightly higher one.
func (l *lot) join(run pawl.ID, row *runRow) (position int) {
	if row.Line&l.kind == 0 {
		l.number++
		row.Line |= l.kind
		*row.numberIn(l.kind) = l.number
		l.changed = true
		if !l.more {
			l.line = append(l.line, waiter{lineKey(l.head, l.number), run})
		}
	}
	own := *row.numberIn(l.kind)
	l.put(row.lineKey(l.kind), run[:]) // damage may have removed it
	for _, w := range l.line {
		if number(w.key) >= own {
			return position + 1
		}
		position++
	}
	if position > 0 && l.more {
		position = max(position, int(min(own-number(l.line[0].key), math.MaxInt32)))
	}
	return position + 1
}

// becomes sets the status, unless the run is blocked.
func (row *runRow) becomes(s Status) {
	if row.Status != Blocked {
		row.Status = s
	}
}

// leaveLines removes the run from its lines, except from those of the given kinds.
func (p *places) leaveLines(r rows, row *runRow, except ...placeKind) error {
	for _, kind := range placeKinds {
		if row.Line&kind == 0 || slices.Contains(except, kind) {
			continue
		}
		l, err := p.lot(r, row, kind)
		if err != nil {
			return err
		}
		l.leaveLine(row)
	}
	return nil
}

// leaveLine removes the run from the line.
func (l *lot) leaveLine(row *runRow) {
	if row.Line&l.kind == 0 {
		return
	}
	key := row.lineKey(l.kind)
	l.line = slices.DeleteFunc(l.line, func(w waiter) bool { return bytes.Equal(w.key, key) })
	l.delete(key)
	l.vacated = true
	row.Line &^= l.kind
	*row.numberIn(l.kind) = 0
}

// leave takes the places of a run that ends, and gives them to the runs that wait for them.
func (p *places) leave(ops driver.Ops, r rows, run pawl.ID, row *runRow) error {
	row.Places &^= started
	for _, kind := range placeKinds {
		if (row.Line|row.Places)&kind == 0 {
			continue
		}
		l, err := p.lot(r, row, kind)
		if err != nil {
			return err
		}
		l.leaveLine(row)
		if row.Places&kind != 0 {
			row.Places &^= kind
			if err := l.vacate(r, run); err != nil {
				return err
			}
		}
		if _, err := p.give(ops, r, l); err != nil {
			return err
		}
	}
	return p.rouse(ops, r)
}

// vacate frees the place of a run, unless damage has already removed the row.
func (l *lot) vacate(r rows, run pawl.ID) error {
	key := takenKey(l.head, run)
	there, err := r.Get(tablePlaces, key)
	if there != nil && err == nil {
		l.taken--
		l.vacated = true
		l.delete(key)
	}
	return present(err)
}

// give gives a free place to the first run in line. It returns false if no place is free, or no run waits. If a
// limit per key was added since a run began to wait, the run needs a place of its key before one of its flow: it
// moves to that line. Runs that a rate limits take their places themselves; see [places.rouse].
func (p *places) give(ops driver.Ops, r rows, l *lot) (bool, error) {
	for !l.rated() && l.free() {
		if len(l.line) == 0 {
			if !l.more || p.read > 0 { // another mutation handles the next portion
				break
			}
			if err := p.readLine(r, l); err != nil {
				return false, err
			}
			continue
		}
		w := l.line[0]
		row, err := p.waiting(r, l, w)
		if err != nil {
			return false, err
		}
		if row == nil {
			l.line = l.line[1:] // damage left it
			l.delete(w.key)
			continue
		}
		p.change(w.run, row)
		if row.Paused && p.limits.rated() {
			if err := p.leaveLines(r, row); err != nil {
				return false, err
			}
			continue
		}
		switch all, err := p.take(ops, r, w.run, row); {
		case err != nil:
			return false, err
		case all:
			row.becomes(Running)
			comes, err := p.ready(ops, w.run, row)
			if err == nil && !comes { // so that it does not delay other runs under a rate
				err = p.leaveLines(r, row)
			}
			return true, err
		case row.Places&l.kind != 0:
			return true, nil
		}
	}
	return false, nil
}

// waiting returns the row of a run in line, or nil if it does not wait there.
func (p *places) waiting(r rows, l *lot, w waiter) (*runRow, error) {
	row, err := p.row(r, w.run)
	switch {
	case errors.Is(err, pawl.ErrCorrupt):
		return nil, nil
	case err != nil || row == nil:
		return nil, err
	case !row.open() || row.Line&l.kind == 0 || !bytes.Equal(w.key, row.lineKey(l.kind)):
		return nil, nil
	}
	return row, nil
}

// row returns the row of a run, which it reads once per mutation.
func (p *places) row(r rows, run pawl.ID) (*runRow, error) {
	if row := p.rows[run]; row != nil {
		return row, nil
	}
	if row := p.looked[run]; row != nil {
		return row, nil
	}
	row, err := r.run(run)
	if p.looked == nil {
		p.looked = make(map[pawl.ID]*runRow)
	}
	p.looked[run] = row
	return row, err
}

// change makes the mutation write the row of another run.
func (p *places) change(run pawl.ID, row *runRow) {
	if p.rows == nil {
		p.rows = make(map[pawl.ID]*runRow)
	}
	p.rows[run] = row
}

// ready makes the job of a run ready after the run got its last place. A run that is being cancelled is ready
// already, and a paused or blocked run waits for Resume. If the job is gone or damaged, an operator has to act.
func (p *places) ready(ops driver.Ops, run pawl.ID, row *runRow) (comes bool, err error) {
	if row.Cancel != "" || row.Terminate != "" || row.Paused || row.Status == Blocked {
		return false, nil
	}
	state, err := ops.State(run)
	switch {
	case errors.Is(err, pawl.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case state == pawl.Delayed:
		return true, p.wake(ops, run)
	}
	return state == pawl.Ready || state == pawl.Leased, nil
}

// wake makes a delayed job ready, unless the mutation already did.
func (p *places) wake(ops driver.Ops, run pawl.ID) error {
	if p.woken[run] {
		return nil
	}
	if p.woken == nil {
		p.woken = make(map[pawl.ID]bool)
	}
	p.woken[run] = true
	return ops.RunNow(run)
}

func (l *lot) put(key, content []byte) {
	l.deletes = slices.DeleteFunc(l.deletes, func(k []byte) bool { return bytes.Equal(k, key) })
	l.puts = slices.DeleteFunc(l.puts, func(p put) bool { return bytes.Equal(p.key, key) })
	l.puts = append(l.puts, put{tablePlaces, key, content})
}

func (l *lot) delete(key []byte) {
	l.puts = slices.DeleteFunc(l.puts, func(p put) bool { return bytes.Equal(p.key, key) })
	l.deletes = append(l.deletes, key)
}
