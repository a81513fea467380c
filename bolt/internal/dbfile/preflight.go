package dbfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// inspect checks a file by plain reads before bbolt maps it. A map of a truncated file faults,
// and bbolt trusts the content of pages: a damaged page can make bbolt loop, read other memory,
// or overflow the stack, which is fatal. So inspect checks every page, whatever the size of the
// file.
func inspect(f *os.File, a Access) (c claimed, err error) {
	c = claimed{file: f, stopReading: func() {}}
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	if info.Size() == 0 {
		return c, fmt.Errorf("%w: the file is empty; remove it to have it created anew", ErrNotQueue)
	}
	if c.meta, err = pages.Newest(f); err != nil {
		return c, pageError(err)
	}
	c.freelist = c.meta.HasFreelist()
	if info.Size() > readAheadFrom {
		c.stopReading = readAhead(f)
	}
	if CanLock {
		err = pages.Check(context.Background(), f, info.Size())
	} else if size := c.meta.Bytes(); size > info.Size() { // a running queue may be enlarging it
		err = fmt.Errorf("%w: the file is truncated: it has %d bytes of %d", pages.ErrDamaged, info.Size(), size)
	}
	if a.ReadOnly && errors.Is(err, pages.ErrFreelist) {
		c.freelist, err = false, nil // readers do not need it
	}
	if err != nil {
		c.stopReading()
	}
	return c, pageError(err)
}

// pageError converts an error of package pages to one of this package.
func pageError(err error) error {
	switch {
	case errors.Is(err, pages.ErrForeign):
		return fmt.Errorf("%w: it is no bbolt file; was another path meant?", ErrNotQueue)
	case errors.Is(err, pages.ErrDamaged):
		what := strings.TrimPrefix(err.Error(), pages.ErrDamaged.Error()+": ")
		return fmt.Errorf("%w: the pages of the file are damaged: %s; restore a backup, or save what is sound with Salvage (jobctl db salvage). %s", pawl.ErrCorrupt, what, PlainCopy)
	}
	return err
}
