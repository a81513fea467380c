package main

import (
	"fmt"

	"github.com/gopawl/pawl/dlq"
)

// alike groups errors that differ only in IDs, numbers, times and quoted texts. It keeps the
// first text of each group, so a million errors with one cause use the memory of one.
type alike struct {
	groups map[string]*likeness
	order  []*likeness
	count  int
}

// likeness is one group.
type likeness struct {
	first string
	count int
	vary  bool // the texts are not all equal
}

// add adds an error, and returns its group.
func (a *alike) add(text string) *likeness { return a.addAs(dlq.Fingerprint(text), text) }

// addAs is add for an error whose group has its own key.
func (a *alike) addAs(key, text string) *likeness {
	if a.groups == nil {
		a.groups = make(map[string]*likeness)
	}
	a.count++
	g := a.groups[key]
	if g == nil {
		g = &likeness{first: text}
		a.groups[key] = g
		a.order = append(a.order, g)
	}
	g.count++
	g.vary = g.vary || text != g.first
	return g
}

// lines returns the first groups, one per line, and how many errors are in the rest.
func (a *alike) lines(of string) (lines []string) {
	more := a.count
	for _, g := range a.order[:min(len(a.order), shownDamage)] {
		more -= g.count
		text := g.first
		switch {
		case g.vary:
			text += fmt.Sprintf(" (and %d alike)", g.count-1)
		case g.count > 1:
			text += fmt.Sprintf(" (%s)", plural(g.count, of))
		}
		lines = append(lines, text)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}
