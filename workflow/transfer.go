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

// RowsForm is the version of the rows that [Reader.Rows] returns. It is the version of the values
// in the file.
const RowsForm = driver.RowForm

// Row is one row of a run: its table, its key after the run, and its content.
type Row struct {
	In    string
	Key   []byte
	Value []byte
}

// Rows is everything stored for a run, or a part of it that fits into a request. Programs
// that copy runs between files use it. The parts of a run are ordered. The last part has the
// row of the run itself, so a run exists only once it is complete.
type Rows struct {
	Run  pawl.ID
	Form int // version of the content: [RowsForm]
	Part int // from 1
	Rows []Row
	All  int    // total rows of the run in all parts
	Next string // where the next part begins, "" after the last
	Mark uint64 // identifies the state of all rows of the run: parts with different marks are from different moments

	// Job is the job of the run at the time of the rows, nil if the run has no job. Only the first
	// part has Job, or JobErr if the job is unreadable.
	Job    *pawl.Envelope
	JobErr error
}

// Last reports whether no part follows this one.
func (p *Rows) Last() bool { return p.Next == "" }

// transferred are the tables with rows of a run, in transfer order. The content of the other
// tables follows from the row of the run.
var transferred = [...]*driver.Table{tableBlobs, tableSteps, tableSignals, tableSeen, tableAnswers, tablePublished, tableStreams, tableItems, tableBlocked, tableRuns}

// Limits on a part, unless a single row is larger. Rows of tables from lastTable on are in the
// last part, since they are useless without the row of the run.
const (
	partRows  = 1000
	partBytes = 512 << 10
	inOne     = 8
)

// steady is how often a run is reread until its job matches its rows.
const steady = 10

// Rows reads a part of what is stored for a run: the first part, or the part at after, the Next
// of the previous part. If Mark differs from that of the first part, the run has changed and
// must be read again. It returns [ErrNotFound] if there is no such run, and [pawl.ErrCorrupt]
// if a row of the run is damaged, in which case nothing can be copied.
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
			return p, nil // the run continues from these rows, as after a crash
		}
		if same, err := r.stands(ctx, &p); same || err != nil {
			return p, err
		}
	}
	// The run hardly ever waits, so treat it as leased: it continues at once.
	if p.Job != nil && p.Job.State == pawl.Delayed {
		p.Job.State = pawl.Ready
	}
	return p, nil
}

// jobOf returns the job of a run, nil if there is none, or why it is unreadable.
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

// stands reports whether the rows of the run are unchanged since a part was read. If so, a job
// that was read in between matches them.
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

// maxRows limits the rows of one run that can be transferred, which each part counts.
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
			if content, err = driver.Unseal(t, key, value); err != nil {
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

// mark returns how many rows a run has, and a sum of their checksums. It ignores a journal that
// is not in use.
func (r rows) mark(run pawl.ID, row *runRow) (all int, sum uint64, err error) {
	ecma := crc64.MakeTable(crc64.ECMA)
	for _, t := range transferred {
		err := r.Scan(t, driver.Span{Prefix: run[:]}, func(key, value []byte) bool {
			if !row.leftBehind(t, key) {
				all++
				sum = crc64.Update(sum, ecma, value[max(0, len(value)-4):]) // the checksum of a row covers its table and key, too
			}
			return true
		})
		if err := present(err); err != nil {
			return 0, 0, err
		}
	}
	return all, sum, nil
}

// A place is the number of the part that begins after a row, and the table and key of the row.
func formatPlace(number int, row Row) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(number))
	b = append(b, byte(tableNumber(row.In)))
	return cursorText.EncodeToString(append(b, row.Key...))
}

func parsePlace(text string) (table int, from []byte, number int, err error) {
	if text == "" {
		return 0, nil, 1, nil
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) < 5 || int(b[4]) >= len(transferred) || len(b) > 5+maxRowKey {
		return 0, nil, 0, &pawl.InvalidError{Field: "after", Reason: "it does not come from an earlier part; begin without it"}
	}
	return int(b[4]), append([]byte{}, b[5:]...), int(binary.BigEndian.Uint32(b)), nil
}

// maxRowKey is the maximum length of a key without the run.
const maxRowKey = 1 + 8 + MaxID

// tableNumber returns the index of a table in transferred, or -1 if it is not there.
func tableNumber(name string) int {
	return slices.IndexFunc(transferred[:], func(t *driver.Table) bool { return t.String() == name })
}

// Rename replaces the ID of the run, and the IDs of the runs that its rows name, for programs that
// assign new IDs. For a run that keeps its ID, other returns the same ID.
func (p *Rows) Rename(other func(pawl.ID) pawl.ID) error {
	p.Run = other(p.Run)
	for i := range p.Rows {
		row := &p.Rows[i]
		switch row.In {
		case tableRuns.String():
			head, err := decodeRow(row.Value)
			if err != nil {
				return err
			}
			head.Parent, head.Forked = renamed(head.Parent, other), renamed(head.Forked, other)
			content, err := driver.EncodePayload(head)
			if err != nil {
				return err
			}
			row.Value = content
		case tableSteps.String():
			var e entry
			if err := driver.DecodePayload(row.Value, &e); err != nil {
				return err
			}
			if e.Child.IsZero() {
				continue
			}
			e.Child = other(e.Child)
			content, err := driver.EncodePayload(&e)
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
