package top

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// list is one page of the jobs of a pane. Only a page is ever read; the cursors of those
// before it are kept, so that it goes back as well.
type list struct {
	pages    []cursor // where the pages up to this one begin, but for the first, which begins at zero
	next     *cursor  // where the one behind it begins; nil at the end
	jobs     []bolt.Listed
	at       int     // the row that is selected
	selected pawl.ID // its job, which stays selected while others come and go
	known    bool    // it was read at all
}

// from is where the page begins.
func (l *list) from() cursor {
	if len(l.pages) == 0 {
		return cursor{}
	}
	return l.pages[len(l.pages)-1]
}

// set takes what was read. It reports whether the page has become empty and there is one
// before it, to which it has gone back.
func (l *list) set(jobs []bolt.Listed, next *cursor) (back bool) {
	l.jobs, l.next, l.known = jobs, next, true
	if len(jobs) == 0 && next == nil && len(l.pages) > 0 {
		l.pages = l.pages[:len(l.pages)-1]
		return true
	}
	for i, job := range jobs {
		if job.Job.ID == l.selected {
			l.at = i
			return false
		}
	}
	l.choose(l.at)
	return false
}

// choose selects a row, or the one nearest to it.
func (l *list) choose(row int) {
	l.at, l.selected = max(min(row, len(l.jobs)-1), 0), pawl.ID{}
	if len(l.jobs) > 0 {
		l.selected = l.jobs[l.at].Job.ID
	}
}

// move goes rows down, or up when it is negative, and over the end of the page to the next
// one. It reports whether another page is to be read.
func (l *list) move(rows int) bool {
	switch to := l.at + rows; {
	case to >= len(l.jobs) && l.next != nil && l.at >= len(l.jobs)-1:
		l.pages = append(l.pages, *l.next)
		l.next, l.at, l.selected = nil, 0, pawl.ID{}
		return true
	case to < 0 && len(l.pages) > 0 && l.at == 0:
		l.pages = l.pages[:len(l.pages)-1]
		l.at, l.selected = endOfPage, pawl.ID{}
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
	return again
}

// current is the job that is selected, if any.
func (l *list) current() (bolt.Listed, bool) {
	if l.at >= len(l.jobs) {
		return bolt.Listed{}, false
	}
	return l.jobs[l.at], true
}
