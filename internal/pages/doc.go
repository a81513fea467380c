// Package pages reads a bbolt file by plain reads and trusts nothing in it.
//
// bbolt maps its file and follows what the pages say. Its pages have no checksums, so a
// damaged one makes it panic, fault, loop or eat all memory, some of it in goroutines where
// no recover reaches. [Check] looks first: what passes may be mapped. [Walk] is for what
// does not pass: it visits whatever is sound and goes on past what is not, and [Strays]
// finds the leaf pages that no tree leads to any more.
//
// A [Meta] is the page from which a file is read; there are two, written in turn. From it
// a tree of branch and leaf pages leads to the elements, some of which are buckets: trees of
// their own, or small ones that lie within the element. A page may overflow into those
// behind it, its run.
//
// The package imports no bbolt and knows nothing of queues. Its memory is a bit for each
// page of the file, the branch pages on the way to where it is, and small windows on the
// file; what it recurses into is bounded. A file that somebody writes to in the meantime
// looks damaged. What it knows is the layout of bbolt 1.5.0.
package pages

import (
	"errors"
	"fmt"
)

var (
	// ErrDamaged says that a file must not be handed to bbolt: the error names the page
	// and what is wrong with it. Restore a backup, or save what is sound into a new file.
	ErrDamaged = errors.New("damaged pages")

	// ErrFreelist says that the list of free pages is damaged, and nothing else: the file may
	// be read, and must not be written to. It comes with ErrDamaged.
	ErrFreelist = errors.New("damaged list of free pages")

	// ErrForeign says that a file has no page of bbolt's where it must begin with one. Look
	// whether another file was meant.
	ErrForeign = errors.New("not a bbolt file")
)

// damage is what is wrong with one page.
func damage(page uint64, format string, args ...any) error {
	return fmt.Errorf("%w: page %d: %s", ErrDamaged, page, fmt.Sprintf(format, args...))
}
