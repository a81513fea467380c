package top

import (
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// row is a job, or a workflow run with the ID of its job.
type row struct {
	pawl.Listed
	run      *workflow.Info // nil for a job
	progress string         // progress of a running job; empty if it has reported none
}

// list is one page of the rows of a pane. It keeps only that page, and the cursors of earlier
// pages to go back. If one reading does not fill a page, the next readings do, until there is
// nothing more to read.
type list struct {
	pages    []cursor // where the pages up to this one begin, except the first, which begins at zero
	next     *cursor  // where the next reading begins; nil at the end
	rows     []row
	at       int     // the selected row
	selected pawl.ID // its job, which stays selected while other rows come and go
	known    bool    // it was read at least once
	seeking  bool    // it is still being filled
	looked   int     // jobs that were read to fill it
	readings int     // readings that filled it

	marked map[pawl.ID]bool // rows for the next action, on all pages
}

// from returns where the page begins.
func (l *list) from() cursor {
	if len(l.pages) == 0 {
		return cursor{}
	}
	return l.pages[len(l.pages)-1]
}

// start returns where the next reading begins: after the last one while the page is being
// filled, and otherwise at the beginning of the page.
func (l *list) start() cursor {
	if l.seeking && l.next != nil {
		return *l.next
	}
	return l.from()
}

// costly reports whether the page took more than one reading. Such a page is not refreshed
// automatically.
func (l *list) costly() bool { return l.known && !l.seeking && l.readings > 1 }

// restart makes the next reading start at the beginning of the page.
func (l *list) restart() { l.seeking, l.readings, l.looked = false, 0, 0 }

// take adds the result of a reading that began at a position, for a page of that many rows. It
// reports whether another reading is needed, because the page is not full yet, or because it
// has become empty and the previous page is shown.
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

// keep selects the previously selected row, or the one in its place.
func (l *list) keep() {
	if i := slices.IndexFunc(l.rows, func(one row) bool { return one.Job.ID == l.selected }); i >= 0 {
		l.at = i
	} else {
		l.choose(l.at)
	}
}

// drop removes rows that an action changed, and their marks.
func (l *list) drop(ids []pawl.ID) {
	gone := make(map[pawl.ID]bool)
	for _, id := range ids {
		gone[id] = true
		delete(l.marked, id)
	}
	if l.costly() {
		l.rows = slices.DeleteFunc(slices.Clone(l.rows), func(one row) bool { return gone[one.Job.ID] })
		l.keep()
	}
}

// choose selects a row, or the nearest one.
func (l *list) choose(row int) {
	l.at, l.selected = max(min(row, len(l.rows)-1), 0), pawl.ID{}
	if len(l.rows) > 0 {
		l.selected = l.rows[l.at].Job.ID
	}
}

// mark toggles the mark of the selected row, and moves to the next one.
func (l *list) mark() {
	current, ok := l.current()
	if !ok {
		return
	}
	if id := current.Job.ID; l.marked[id] {
		delete(l.marked, id)
	} else {
		l.markRows(current)
	}
	l.choose(l.at + 1)
}

// markAll marks the rows of the page.
func (l *list) markAll() { l.markRows(l.rows...) }

func (l *list) markRows(rows ...row) {
	if l.marked == nil {
		l.marked = make(map[pawl.ID]bool)
	}
	for _, row := range rows {
		l.marked[row.Job.ID] = true
	}
}

// move goes down by rows, or up if rows is negative. Past the end of the page, it goes to the
// next page. It reports whether another page must be read.
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

// endOfPage is a row after every page; the last existing row is selected.
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

// current returns the selected row, if any.
func (l *list) current() (row, bool) {
	if l.at >= len(l.rows) {
		return row{}, false
	}
	return l.rows[l.at], true
}
