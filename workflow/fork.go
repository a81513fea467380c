package workflow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Fork starts a new run of the same flow and input that continues from a step of another run. The
// new run has the results of all calls that began before that step and have ended, so they do not
// run again. It makes that step's call anew. From is the step as [Entry.Step] writes it. "" begins
// at the top. The other run, ended or not, is unchanged.
//
// Changes of shared values are copied in their order, up to the first change that the new run makes itself. Signals,
// published values, streams and undo steps are not copied. Children that have ended are copied as results. The new run
// is durable when Fork returns.
//
// Errors: [ErrNotFound], [ErrConflict] if newID is taken, [pawl.ErrInvalid] for a bad ID or a
// step that the journal does not have, and those of a [Store].
func (e *Engine) Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error) {
	if err := validID(newID); err != nil {
		return pawl.ID{}, err
	}
	f := &fork{id: pawl.NewID(e.now())}
	err := e.source.ViewRows(ctx, func(tx driver.Reader) error {
		if err := f.copy(rowsOf(tx), run, from); err != nil {
			return err
		}
		f.row.ID = newID
		return f.free(rowsOf(tx))
	})
	if err != nil {
		return pawl.ID{}, fmt.Errorf("fork: %w", err)
	}
	if f.job, err = e.anew(f.id, &f.row); err != nil {
		return pawl.ID{}, fmt.Errorf("fork: %w", err)
	}
	for rest := f.journal.puts; !f.last; {
		f.journal.puts, f.journal.bytes, rest = cut(rest)
		f.staged += len(f.journal.puts)
		f.last = len(rest) == 0
		if err := e.queue.Mutate(ctx, f, f.journal.bytes+requestBytes); err != nil {
			return pawl.ID{}, fmt.Errorf("fork: %w", err)
		}
	}
	return f.id, nil
}

// cut removes the rows for one transaction from the rows to write, and returns them.
func cut(puts []put) (first []put, size int, rest []put) {
	left := portionQuota()
	n := 0
	for ; n < len(puts) && !left.spent(); n++ {
		left.rows--
		left.bytes -= len(puts[n].key) + len(puts[n].value)
	}
	return puts[:n], portionQuota().bytes - left.bytes, puts[n:]
}

// fork is the mutation that starts a run with the beginning of another run's journal. A long
// journal takes several commits. The last one creates the run. Until then the rows are kept
// like parts of an import.
type fork struct {
	id      pawl.ID
	row     runRow
	job     *pawl.Envelope
	journal journal // entries, and the input
	staged  int     // rows written so far
	last    bool    // this commit has the rest of the journal
	now     time.Time
}

// copy reads the journal of the new run. Ended calls never change, so copy does not have to read them in the
// transaction that writes them.
func (f *fork) copy(r rows, run pawl.ID, from string) error {
	old, err := r.mustRun(run)
	if err != nil {
		return err
	}
	input, err := r.input(run, old)
	if err != nil {
		return err
	}
	f.row = runRow{Flow: old.Flow, Status: Running, Queue: old.Queue, Retain: old.Retain, Fingerprint: old.Fingerprint, Declared: old.Declared,
		OutputBytes: -1, Forked: run, Journal: old.Journal, Key: old.Key, Attributes: old.Attributes}
	if fitsRow(input) {
		f.row.Input = input
	} else {
		f.journal.put(tableBlobs, seqKey(f.id, inputSeq), input)
	}
	if from == "" {
		return nil
	}
	all, err := r.entries(run, old.Journal)
	if err != nil {
		return err
	}
	kept, err := before(all, from)
	if err != nil {
		return err
	}
	for _, e := range kept {
		if e.Result, err = r.value(run, e); err != nil {
			return err
		}
		f.journal.add(f.id, e)
		f.row.Bytes += e.weight()
		f.row.Signals = max(f.row.Signals, e.Signal) // the signal may be given back
	}
	f.row.Steps = len(kept)
	return nil
}

// before returns the entries of a journal that began before a step and have ended. A scope never has a gap: once
// an entry is omitted, the later ones are omitted, too, even versions. The same is true of the changes of shared values. A Wait
// whose signal was given back waits again, unless its branch has also lost in the new run.
func before(all []*entry, from string) (kept []*entry, err error) {
	var at *entry
	for _, e := range all {
		if !inUndo(e.Scope) && stepName(e.Scope, e.Name, e.Occurrence) == from {
			at = e
			break
		}
	}
	if at == nil {
		return nil, &pawl.InvalidError{Field: "step", Reason: noStep(all, from)}
	}
	kept = keep(all, func(e *entry) bool { return e.seq < at.seq })
	// A change of a shared value depends on those before it.
	has := make(map[*entry]bool, len(kept))
	for _, e := range kept {
		has[e] = true
	}
	var gone uint64
	for _, e := range all {
		if e.Order != 0 && !has[e] && (gone == 0 || e.Order < gone) {
			gone = e.Order
		}
	}
	if gone != 0 {
		kept = keep(all, func(e *entry) bool { return e.seq < at.seq && e.Order < gone })
	}
	return kept, nil
}

// keep returns the ended entries for which ok returns true, without those that have a gap before them.
func keep(all []*entry, ok func(*entry) bool) (kept []*entry) {
	next := map[string]int{"": 0} // next position in each scope that began; the scope of the undo steps never begins
	cut := make(map[string]bool)  // scopes with an omitted call, on which their later versions may depend
	for _, e := range all {
		_, began := next[e.Scope]
		switch {
		case !began || e.State == EntryPending:
			continue
		case !ok(e) || e.givenBack():
			cut[e.Scope] = true
			continue
		case e.Kind == KindVersion: // a version has no position
			if cut[e.Scope] {
				continue
			}
		case e.At != next[e.Scope]:
			cut[e.Scope] = true
			continue
		default:
			next[e.Scope]++
		}
		if e.State == EntryBegun {
			next[stepName(e.Scope, e.Name, e.Occurrence)] = 0
		}
		kept = append(kept, e)
	}
	return kept
}

// maxSteps is how many steps an error lists.
const maxSteps = 50

func noStep(all []*entry, from string) string {
	var names []string
	more := 0
	for _, e := range all {
		switch {
		case inUndo(e.Scope):
		case len(names) == maxSteps:
			more++
		default:
			names = append(names, stepName(e.Scope, e.Name, e.Occurrence))
		}
	}
	s := fmt.Sprintf("the journal has no %q, but ", ellipsis.Truncate(from, MaxID))
	if len(names) == 0 {
		return s + "nothing"
	}
	s += strings.Join(names, ", ")
	if more > 0 {
		s += fmt.Sprintf(", and %d more", more)
	}
	return s
}

// free requires that no other run has the ID.
func (f *fork) free(r rows) error {
	known, err := r.find(f.row.Flow, f.row.ID)
	if err != nil {
		return err
	}
	if !known.IsZero() {
		return fmt.Errorf("workflow %s %q, which is run %s: %w", f.row.Flow, f.row.ID, known, ErrConflict)
	}
	return nil
}

// Check requires that the ID is free.
func (f *fork) Check(ops driver.Ops) error {
	if err := f.free(rowsOf(ops)); err != nil {
		return err
	}
	f.now = ops.Now()
	if !f.last {
		return nil
	}
	f.row.Created = ops.Now().UnixNano()
	_, err := ops.Enqueue(f.job)
	return err
}

// Apply writes rows of the new run.
func (f *fork) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := f.journal.apply(r); err != nil {
		return err
	}
	if !f.last {
		return r.stage(f.now, f.id, f.staged)
	}
	if err := r.unstage(f.now, f.id); err != nil {
		return err
	}
	if err := r.put(tableIDs, idKey(f.row.Flow, f.row.ID), f.id[:]); err != nil {
		return err
	}
	if err := r.putFound(f.id, &f.row); err != nil {
		return err
	}
	return r.putRun(f.id, &f.row)
}
