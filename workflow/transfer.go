package workflow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// RowsForm is the form of the rows that [Reader.Rows] returns. It is that of the values in the
// file, and rises with it.
const RowsForm = rowVersion

// Row is one row of a run: the table it lies in, its key behind the run, and its content.
type Row struct {
	In    string
	Key   []byte
	Value []byte
}

// Rows is all that is stored of a run, or a part of it that fits into a request: for who
// carries runs from one file to another. The parts of a run come in an order, and the last
// has the row of the run itself, so that nothing is a run before it is whole.
type Rows struct {
	Run  pawl.ID
	Form int // of the content: [RowsForm]
	Part int // from 1
	Rows []Row
	All  int    // how many rows the run has, in all its parts
	Next string // where the next part begins, "" behind the last
	Mark uint64 // stands for all rows of the run: parts of which it differs are of two moments

	// Job is the job of the run as it stood beside the rows; nil when it has none. It is there
	// in the first part, and JobErr in its place when it cannot be read.
	Job    *pawl.Envelope
	JobErr error
}

// Last reports whether no part comes behind this one.
func (p *Rows) Last() bool { return p.Next == "" }

// transferred are the tables that have rows of a run, in the order in which they travel. What
// is in the others follows from the row of the run.
var transferred = [...]*driver.Table{tableBlobs, tableSteps, tableSignals, tableSeen, tablePublished, tableBlocked, tableRuns}

// How much a part has, at most, unless one row alone is larger; and from which table on rows
// stand in the last part, since they are of no use without the row of the run.
const (
	partRows  = 1000
	partBytes = 512 << 10
	inOne     = 5
)

// steady is how often a run is read until its job is of the same moment.
const steady = 10

// Rows reads a part of what is stored of a run: the first, or that behind the place which
// after names, the Next of the part before. When Mark is not that of the first part the run
// has changed, and is to be read anew. [ErrNotFound] says that there is no such run. One that
// has a damaged row gives [pawl.ErrCorrupt]: it has nothing to carry.
func (r *Reader) Rows(ctx context.Context, run pawl.ID, after string) (p Rows, err error) {
	if after != "" {
		return r.part(ctx, run, after)
	}
	for range steady {
		if p, err = r.part(ctx, run, ""); err != nil {
			return p, err
		}
		if p.Job, p.JobErr, err = r.jobOf(ctx, run); err != nil {
			return p, err
		}
		if p.Job != nil && (p.Job.State == pawl.Ready || p.Job.State == pawl.Leased) {
			return p, nil // it goes on from these rows, as after a crash
		}
		if same, err := r.stands(ctx, &p); same || err != nil {
			return p, err
		}
	}
	// It hardly ever waits, so it is as if somebody had it: it goes on at once.
	if p.Job != nil && p.Job.State == pawl.Delayed {
		p.Job.State = pawl.Ready
	}
	return p, nil
}

// jobOf is the job of a run, nil when it has none, or why it cannot be read.
func (r *Reader) jobOf(ctx context.Context, run pawl.ID) (job *pawl.Envelope, damage, err error) {
	job, err = r.source.Job(ctx, run)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		return nil, nil, nil
	case errors.Is(err, pawl.ErrCorrupt):
		return nil, err, nil
	}
	return job, nil, err
}

// stands reports whether the rows of the run are those of which a part was read. A job that was
// read in between stood beside them.
func (r *Reader) stands(ctx context.Context, p *Rows) (same bool, err error) {
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		rs := rowsOf(tx)
		row, err := rs.run(p.Run)
		if row == nil || err != nil {
			return err
		}
		all, mark, err := rs.mark(p.Run, row)
		same = all == p.All && mark == p.Mark
		return err
	})
	return same, err
}

// part reads one part.
func (r *Reader) part(ctx context.Context, run pawl.ID, after string) (p Rows, err error) {
	table, from, number, err := parsePlace(after)
	if err != nil {
		return p, err
	}
	err = r.view(ctx, run, func(rs rows) error {
		row, err := rs.run(run)
		if err != nil {
			return err
		}
		p = Rows{Run: run, Form: RowsForm, Part: number}
		if p.All, p.Mark, err = rs.mark(run, row); err != nil {
			return err
		}
		if p.All > maxRows {
			return fmt.Errorf("run %s has %d rows, at most %d can be carried: %w", run, p.All, maxRows, ErrTooMany)
		}
		return p.fill(rs, row, table, from)
	})
	if err != nil {
		return Rows{}, fmt.Errorf("rows of run %s: %w", run, err)
	}
	return p, nil
}

// maxRows is how many rows of one run can be carried, which each part counts.
const maxRows = 1 << 20

// fill reads rows from a place on.
func (p *Rows) fill(rs rows, row *runRow, table int, from []byte) (err error) {
	size := 0
	for ; table < len(transferred); table, from = table+1, nil {
		t, span := transferred[table], driver.Span{Prefix: p.Run[:]}
		if from != nil {
			span.From = driver.After(append(slices.Clone(p.Run[:]), from...))
		}
		failed := rs.Scan(t, span, func(key, value []byte) bool {
			if row.leftBehind(t, key) {
				return true
			}
			var content []byte
			if content, err = unseal(t, key, value); err != nil {
				return false
			}
			if n := len(p.Rows); n > 0 && table < inOne && (n >= partRows || size+len(content) > partBytes) {
				p.Next = formatPlace(p.Part+1, p.Rows[n-1])
				return false
			}
			size += len(key) + len(content)
			p.Rows = append(p.Rows, Row{t.String(), bytes.Clone(key[len(p.Run):]), append([]byte{}, content...)})
			return true
		})
		if err == nil {
			err = failed
		}
		if err != nil || p.Next != "" {
			return err
		}
	}
	return nil
}

// mark is how many rows a run has, and a sum of their checksums. Those of a journal that is
// not in use do not count.
func (r rows) mark(run pawl.ID, row *runRow) (all int, sum uint64, err error) {
	ecma := crc64.MakeTable(crc64.ECMA)
	for _, t := range transferred {
		err := r.Scan(t, driver.Span{Prefix: run[:]}, func(key, value []byte) bool {
			if !row.leftBehind(t, key) {
				all++
				sum = crc64.Update(sum, ecma, value[max(0, len(value)-4):]) // which covers table and key too
			}
			return true
		})
		if err := present(err); err != nil {
			return 0, 0, err
		}
	}
	return all, sum, nil
}

// A place is the number of the part that begins behind a row, the row's table and its key.
func formatPlace(number int, row Row) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(number))
	b = append(b, byte(tableNumber(row.In)))
	return bookmarkText.EncodeToString(append(b, row.Key...))
}

func parsePlace(text string) (table int, from []byte, number int, err error) {
	if text == "" {
		return 0, nil, 1, nil
	}
	b, err := bookmarkText.DecodeString(text)
	if err != nil || len(b) < 5 || int(b[4]) >= len(transferred) || len(b) > 5+maxRowKey {
		return 0, nil, 0, &pawl.InvalidError{Field: "after", Reason: "it does not come from an earlier part; begin without it"}
	}
	return int(b[4]), append([]byte{}, b[5:]...), int(binary.BigEndian.Uint32(b)), nil
}

// maxRowKey is how long a key may be behind the run.
const maxRowKey = 1 + 8 + MaxID

// tableNumber is the place of a table among those that travel, -1 when it does not.
func tableNumber(name string) int {
	return slices.IndexFunc(transferred[:], func(t *driver.Table) bool { return t.String() == name })
}

// Rename has the run, and the runs that its rows name, be others: for who gives IDs anew. Of
// a run that it is to leave as it is, other returns the same.
func (p *Rows) Rename(other func(pawl.ID) pawl.ID) error {
	p.Run = other(p.Run)
	for i := range p.Rows {
		row := &p.Rows[i]
		switch row.In {
		case tableRuns.String():
			var head runRow
			if err := pawl.DecodePayload(row.Value, &head); err != nil {
				return err
			}
			head.Parent, head.Forked = renamed(head.Parent, other), renamed(head.Forked, other)
			content, err := pawl.EncodePayload(&head)
			if err != nil {
				return err
			}
			row.Value = content
		case tableSteps.String():
			var e entry
			if err := pawl.DecodePayload(row.Value, &e); err != nil {
				return err
			}
			if e.Child.IsZero() {
				continue
			}
			e.Child = other(e.Child)
			content, err := pawl.EncodePayload(&e)
			if err != nil {
				return err
			}
			row.Value = content
		}
	}
	return nil
}

func renamed(id pawl.ID, other func(pawl.ID) pawl.ID) pawl.ID {
	if id.IsZero() {
		return id
	}
	return other(id)
}
