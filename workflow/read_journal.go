package workflow

import (
	"context"
	"encoding/binary"

	"github.com/gopawl/pawl"
)

// Journal returns the calls that a run has made, in the order in which they began. If values is
// true, the calls have their results, up to [MaxJournal] bytes in total. It returns
// [ErrNotFound] if there is no such run.
//
// Damage does not hide entries: an unreadable entry has its Seq and an Error that describes the
// damage. An entry with an unreadable result has that Error too.
func (r *Reader) Journal(ctx context.Context, run pawl.ID, values bool) (journal []Entry, err error) {
	err = r.view(ctx, run, func(rs rows) error {
		journal = nil
		prefix := run[:]
		if row, err := rs.run(run); err == nil && row != nil {
			prefix = journalPrefix(run, row.Journal)
		}
		return rs.each(tableSteps, prefix, func(key, content []byte, damage error) error {
			journal = append(journal, rs.public(run, key, content, damage, values))
			return nil
		})
	})
	for i := range journal {
		if e := &journal[i]; e.Result != nil {
			if plain, failed := r.shownResult(e); failed == nil {
				e.Result = plain
			} else {
				e.Error = textOf(failed)
			}
		}
	}
	return journal, err
}

// public returns an entry, read from its row, for callers outside the package.
func (r rows) public(run pawl.ID, key, content []byte, damage error, values bool) Entry {
	e := new(entry)
	if damage == nil {
		e, damage = parseEntry(key, content)
	}
	if damage != nil {
		shown := Entry{Error: textOf(damage)}
		if len(key) == len(run)+4 {
			shown.Seq = ordinal(binary.BigEndian.Uint32(key[len(run):]))
		}
		return shown
	}
	shown := e.public()
	shown.Result = nil
	if values && e.State == EntryDone {
		if shown.Result, damage = r.value(run, e); damage != nil {
			shown.Error = textOf(damage)
		}
	}
	return shown
}
