// Package pages reads bbolt files with plain reads and trusts nothing in them.
//
// bbolt maps its file into memory and follows its pages, which have no checksums. A damaged page
// can make it panic, fault, loop or exhaust memory, sometimes in goroutines where no recover
// helps. [Check] reports whether a file is safe to open. [Walk] reads a damaged file: it visits
// what is sound and skips the rest. [Walked.Unreached] finds leaf pages that no tree refers to any more.
//
// A [Meta] is the root of a file; a file has two, written alternately. It refers to a tree of
// branch and leaf pages with elements. Some elements are buckets: trees of their own, or inline
// buckets within the element. A page may overflow into the pages after it; all of them are its
// run.
//
// The package does not import bbolt and knows nothing of queues. It holds in memory one bit for
// each page of the file, the branch pages above the current one, and small windows of the file;
// its recursion is bounded. A file that is written meanwhile looks damaged. The layout is that of
// bbolt 1.5.0.
package pages

import (
	"errors"
	"fmt"
)

var (
	// ErrDamaged means that bbolt must not open the file. The error names the page and the damage.
	// Restore a backup, or save the sound data into a new file.
	ErrDamaged = errors.New("damaged pages")

	// ErrFreelist means that only the list of free pages is damaged: the file can be read, but
	// must not be written. It comes with ErrDamaged.
	ErrFreelist = errors.New("damaged list of free pages")

	// ErrForeign means that the file does not begin with a bbolt page. It may be the wrong file.
	ErrForeign = errors.New("not a bbolt file")
)

// damage returns the error for a damaged page.
func damage(page uint64, format string, args ...any) error {
	return fmt.Errorf("%w: page %d: %s", ErrDamaged, page, fmt.Sprintf(format, args...))
}
