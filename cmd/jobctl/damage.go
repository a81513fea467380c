package main

import (
	"fmt"
	"strings"

	"github.com/gopawl/pawl/dlq"
)

// shownDamage is how many damaged records are named; the rest are counted.
const shownDamage = 10

// damage collects the records that could not be read.
type damage struct {
	count int
	first []string
}

func (d *damage) add(err error) {
	if d.count++; len(d.first) < shownDamage {
		d.first = append(d.first, err.Error())
	}
}

// damaged returns the error for damage to things called noun, or nil if nothing was damaged.
func (a *app) damaged(d *damage, noun string) error {
	if d.count == 0 {
		return nil
	}
	next := strings.Join(d.first, "\n")
	if more := d.count - len(d.first); more > 0 {
		next += fmt.Sprintf("\nand %d more", more)
	}
	const restore = "\nThey were not changed. Restore them from a backup."
	return &failure{exitDamaged, fmt.Sprintf("%s could not be read and %s skipped:", plural(d.count, "damaged "+noun), wasWere(d.count)),
		next + a.by("\nThey were not changed. Keep a copy of the file, and restore them from a backup.", restore, restore)}
}

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
