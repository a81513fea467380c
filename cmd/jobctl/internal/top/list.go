package top

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// row is a job, or a run of a workflow with the ID of its job.
type row struct {
	bolt.Listed
	run *workflow.Info // nil for a job
}

// list is one page of the rows of a pane. Only a page is ever kept, and the cursors of those
// before it, so that it goes back as well. A page that one reading does not fill is filled by the
// next ones, until there is nothing more to look at.
type list struct {
	pages    []cursor // where the pages up to this one begin, but for the first, which begins at zero
	next     *cursor  // where the reading behind it begins; nil at the end
	rows     []row
	at       int     // the row that is selected
	selected pawl.ID // its job, which stays selected while others come and go
	known    bool    // it was read at all
	seeking  bool    // it is filled further
	looked   int     // jobs that were looked at for it
	readings int     // that filled it

	marked map[pawl.ID]bool // rows that the next action is about, on all pages
}

// from is where the page begins.
func (l *list) from() cursor {
	if len(l.pages) == 0 {
		return cursor{}
	}
	return l.pages[len(l.pages)-1]
}

// start is where the next reading begins: behind the last one while the page is being filled,
// and else at its beginning.
func (l *list) start() cursor {
	if l.seeking && l.next != nil {
		return *l.next
	}
	return l.from()
}

// costly reports whether the page took more than one reading. It is not read again by itself.
func (l *list) costly() bool { return l.known && !l.seeking && l.readings > 1 }

// restart has the page read from its beginning.
func (l *list) restart() { l.seeking, l.readings, l.looked = false, 0, 0 }

// take adds what was read from a place on, for a page of so many rows. It reports whether another
// reading is due: the page is not full yet, or has become empty, and the one before it is shown.
func (l *list) take(p page, at cursor, rows int) (again bool) {
	if l.seeking && at != l.from() {
		l.rows = append(l.rows, p.rows...)
		l.readings++
	} else {
		l.rows, l.readings, l.looked = p.rows, 1, 0
	}
	l.looked += p.looked
	l.next, l.known = p.next, true
	if l.seeking = l.next != nil && len(l.rows) < rows; l.seeking {
		l.keep()
		return true
	}
	if len(l.rows) == 0 && l.next == nil && len(l.pages) > 0 {
		l.pages = l.pages[:len(l.pages)-1]
		l.restart()
		return true
	}
	l.keep()
	return false
}

// keep selects the row that was selected, or the one in its place.
func (l *list) keep() {
	for i, row := range l.rows {
		if row.Job.ID == l.selected {
			l.at = i
			return
		}
	}
	l.choose(l.at)
}

// drop takes rows out that an action was about, and their marks.
func (l *list) drop(ids []pawl.ID) {
	gone := make(map[pawl.ID]bool)
	for _, id := range ids {
		gone[id] = true
		delete(l.marked, id)
	}
	if l.costly() {
		var left []row
		for _, row := range l.rows {
			if !gone[row.Job.ID] {
				left = append(left, row)
			}
		}
		l.rows = left
		l.keep()
	}
}

// choose selects a row, or the one nearest to it.
func (l *list) choose(row int) {
	l.at, l.selected = max(min(row, len(l.rows)-1), 0), pawl.ID{}
	if len(l.rows) > 0 {
		l.selected = l.rows[l.at].Job.ID
	}
}

// mark turns the mark of the selected row, and goes to the next one.
func (l *list) mark() {
	current, ok := l.current()
	if !ok {
		return
	}
	if l.marked == nil {
		l.marked = make(map[pawl.ID]bool)
	}
	if id := current.Job.ID; l.marked[id] {
		delete(l.marked, id)
	} else {
		l.marked[id] = true
	}
	l.choose(l.at + 1)
}

// markAll marks the rows of the page.
func (l *list) markAll() {
	if l.marked == nil {
		l.marked = make(map[pawl.ID]bool)
	}
	for _, row := range l.rows {
		l.marked[row.Job.ID] = true
	}
}

// move goes rows down, or up when it is negative, and over the end of the page to the next
// one. It reports whether another page is to be read.
func (l *list) move(rows int) bool {
	switch to := l.at + rows; {
	case to >= len(l.rows) && l.next != nil && !l.seeking && l.at >= len(l.rows)-1:
		l.pages = append(l.pages, *l.next)
		l.next, l.at, l.selected = nil, 0, pawl.ID{}
		l.restart()
		return true
	case to < 0 && len(l.pages) > 0 && l.at == 0:
		l.pages = l.pages[:len(l.pages)-1]
		l.at, l.selected = endOfPage, pawl.ID{}
		l.restart()
		return true
	default:
		l.choose(to)
		return false
	}
}

// endOfPage is a row behind every page; the last one there is will be selected.
const endOfPage = 1 << 20

// first goes back to the first page.
func (l *list) first() bool {
	again := len(l.pages) > 0
	l.pages = nil
	l.choose(0)
	if again {
		l.restart()
	}
	return again
}

// current is the row that is selected, if any.
func (l *list) current() (row, bool) {
	if l.at >= len(l.rows) {
		return row{}, false
	}
	return l.rows[l.at], true
}
