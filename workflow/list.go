package workflow

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Filter selects runs. The zero value selects all.
type Filter struct {
	Flow   string // "" means any
	Status Status // "" means any
	Prefix string // prefix of the ID

	Key        string            // "" means any
	Parent     pawl.ID           // the run that called them as children; zero means any
	Attributes map[string]string // all of these values; nil means any
	Since      time.Time         // runs that were started at this time or later; zero means any
	Until      time.Time         // runs that were started before this time; zero means any
}

// Listing is a page of a list of runs.
type Listing struct {
	// Runs are in the order of their starts. A run with an unreadable row is in every list that reads the row, whatever
	// the filter. Its Info has only Run, and an Error that describes the damage.
	Runs []Info

	// Next is the cursor for the next List, "" at the end. It is opaque and safe in a URL and
	// in a shell: it consists of letters, digits, - and _, and does not begin with -.
	Next string
}

// Limits on what one list, and one transaction, reads.
const (
	listRows = 4 << 10
	walkRows = 1024
)

// List reads some of the runs that match f, oldest first, after the cursor after: "" for the beginning, or
// the Next of an earlier List of the same filter. It returns at most max runs, 1 to [MaxListed], and reads
// about 16,000 at most. So it may return fewer runs, even none, before the end. At the end, Next is "".
//
// It reads in short transactions, so it delays no writer. A run that changes meanwhile appears
// in its old or its new state. List returns [pawl.ErrInvalid] for an unknown status, a max out
// of range, or a cursor that did not come from a List of f.
//
// If the filter has a key, a parent, or attributes, List reads only the runs that match one of these terms. If it has Since,
// List reads only the runs from an hour before Since. It compares each run that it reads with the rest of the filter.
func (r *Reader) List(ctx context.Context, f Filter, after string, max int) (l Listing, err error) {
	if err := f.check(); err != nil {
		return l, err
	}
	if max < 1 || max > MaxListed {
		return l, &pawl.InvalidError{Field: "max", Reason: fmt.Sprintf("%d is not between 1 and %d", max, MaxListed)}
	}
	last, err := parseCursor(after, f)
	if err != nil {
		return l, err
	}
	var w walk
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		w, err = f.walk(rowsOf(tx))
		return err
	})
	if err != nil {
		return l, fmt.Errorf("list runs: %w", err)
	}
	if w.last = last; last == nil && !f.Since.IsZero() {
		w.from = idsSince(f.Since)
	}
	for looked := 0; !w.end && len(l.Runs) < max && looked < listRows; {
		runs, n, err := r.listed(ctx, f, &w, min(walkRows, max-len(l.Runs)))
		if err != nil {
			return Listing{}, fmt.Errorf("list runs: %w", err)
		}
		l.Runs = append(l.Runs, runs...)
		looked += n
	}
	if !w.end {
		l.Next = formatCursor(w.last, f)
	}
	return l, nil
}

func (f Filter) check() error {
	for name, value := range f.Attributes {
		if err := validAttribute(name, value); err != nil {
			return err
		}
	}
	switch f.Status {
	case "", Running, Sleeping, Waiting, Paused, Blocked, Dead, Done, Failed, Cancelled, Terminated:
		return nil
	}
	return &pawl.InvalidError{Field: "status", Reason: fmt.Sprintf("%q is none of a run", f.Status)}
}

// mayChoose reports whether the row matches, before the job is read.
func (f Filter) mayChoose(row *runRow) bool {
	switch {
	case f.Flow != "" && f.Flow != row.Flow, !strings.HasPrefix(row.ID, f.Prefix):
		return false
	case f.Key != "" && f.Key != row.Key, !f.Parent.IsZero() && f.Parent != row.Parent,
		!f.Since.IsZero() && row.Created < unixNano(f.Since), !f.Until.IsZero() && row.Created >= unixNano(f.Until):
		return false
	}
	for name, value := range f.Attributes {
		if value == "" || row.attribute(name) != value {
			return false
		}
	}
	switch {
	case f.Status == "":
		return true
	case f.Status.Ended():
		return f.Status == row.Status
	case f.Status == Paused:
		return row.open() && row.Paused
	case f.Status == Running, f.Status == Dead:
		return row.open()
	}
	return f.Status == row.Status
}

// listed reads up to max runs of one step of a walk, and returns how many it visited.
func (r *Reader) listed(ctx context.Context, f Filter, w *walk, max int) (runs []Info, looked int, err error) {
	type found struct {
		run pawl.ID
		row *runRow
		err error
	}
	var all []found
	looked, err = w.step(ctx, r.source, func(rs rows, key, _ []byte, damage error) bool {
		var one found
		if len(key) == len(one.run) {
			one.run = pawl.ID(key)
		} else if damage == nil {
			damage = fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tableRuns)
		}
		if one.err = damage; damage == nil {
			one.row, one.err = rs.run(one.run)
		}
		switch {
		case one.err == nil && one.row == nil: // the run is only in the index, because it is being removed
		case one.err != nil || f.mayChoose(one.row):
			all = append(all, one)
		}
		return len(all) < max
	})
	if err != nil {
		return nil, 0, err
	}
	for _, one := range all {
		if one.err != nil {
			runs = append(runs, Info{Run: one.run, Error: textOf(one.err)})
			continue
		}
		info, err := r.look(ctx, one.run, one.row)
		switch {
		case errors.Is(err, ErrNotFound): // it was removed in the meantime
		case errors.Is(err, pawl.ErrCorrupt):
			runs = append(runs, Info{Run: one.run, Error: textOf(err)})
		case err != nil:
			return nil, 0, err
		case f.Status == "" || f.Status == info.Status:
			runs = append(runs, info)
		}
	}
	return runs, looked, nil
}

// drawnBefore is how long before the commit of its start the ID of a run may have been generated.
const drawnBefore = time.Hour

// idsSince returns the beginning of the first ID that a run started since a time may have. An ID begins with the time
// when it was generated, or with a later time if the clock was set back.
func idsSince(t time.Time) []byte {
	milli := max(t.Add(-drawnBefore).UnixMilli(), 0)
	return binary.BigEndian.AppendUint64(nil, uint64(milli)<<16)[:6]
}

// walk goes through a table in short transactions.
type walk struct {
	table  *driver.Table
	prefix []byte // prefix of the keys; fn gets the keys without it
	from   []byte // where it begins
	last   []byte // the key of the last row visited
	end    bool
}

// step calls fn for the rows after the last, until fn returns false or it has visited
// [walkRows] of them. It returns how many it visited.
func (w *walk) step(ctx context.Context, s Source, fn func(r rows, key, content []byte, damage error) (more bool)) (looked int, err error) {
	err = s.ViewRows(ctx, func(tx driver.Reader) error {
		r, span := rowsOf(tx), driver.Span{Prefix: w.prefix, Limit: walkRows}
		switch {
		case w.last != nil:
			span.From = driver.After(slices.Concat(w.prefix, w.last))
		case w.from != nil:
			span.From = slices.Concat(w.prefix, w.from)
		}
		w.end = true
		return r.span(w.table, span, func(key, content []byte, damage error) error {
			looked++
			key = key[len(w.prefix):]
			w.last = append(w.last[:0], key...)
			w.end = looked < walkRows
			if !fn(r, key, content, damage) {
				w.end = false
				return errStop
			}
			return nil
		})
	})
	return looked, err
}

// A cursor says where a list continues. It has the version of its format, a checksum of the rest and of the scope of
// the list, and the key of the last row visited. That row may be gone.
const (
	cursorVersion = 1
	cursorHeader  = 1 + 4
)

var cursorText = base64.RawURLEncoding.Strict()

func formatCursor(last []byte, f Filter) string {
	b := append(make([]byte, 0, cursorHeader+len(last)), cursorVersion)
	b = binary.BigEndian.AppendUint32(b, cursorSum(last, f))
	return cursorText.EncodeToString(append(b, last...))
}

func parseCursor(text string, f Filter) (last []byte, err error) {
	if text == "" {
		return nil, nil
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) <= cursorHeader || b[0] != cursorVersion ||
		binary.BigEndian.Uint32(b[1:]) != cursorSum(b[cursorHeader:], f) {
		return nil, &pawl.InvalidError{Field: "after", Reason: "it does not come from an earlier part of this list; begin without it"}
	}
	return b[cursorHeader:], nil
}

func cursorSum(last []byte, f Filter) uint32 {
	scope := fmt.Sprintf("runs %q %q %q %q %s %q %d %d", f.Flow, f.Status, f.Prefix, f.Key, f.Parent, f.Attributes, unixNano(f.Since), unixNano(f.Until))
	return crc32.Update(crc32.Checksum([]byte(scope), castagnoli), castagnoli, last)
}
