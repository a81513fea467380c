package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Check compares every row of workflows with every other, as bolt's Check does for jobs. It
// reads everything in one transaction, so pages freed in that time are not reused until it
// ends. Check joins up to a hundred findings in one error. Each matches [pawl.ErrCorrupt], or
// [pawl.ErrNewerFormat] for a row that a newer build wrote. It returns nil if there are none.
func (rd *Reader) Check(ctx context.Context) error {
	var found []error
	err := rd.source.ViewRows(ctx, func(tx driver.Reader) error {
		c := check{rows: rowsOf(tx), ctx: ctx}
		err := c.all()
		found = c.found
		return err
	})
	return errors.Join(append(found, err)...)
}

// maxFound limits how many findings a check returns.
const maxFound = 100

var errEnough = errors.New("there is more")

// check is the state of one Check.
type check struct {
	rows
	ctx   context.Context
	found []error
}

// wrong records a finding about a run or a row.
func (c *check) wrong(format string, args ...any) {
	c.found = append(c.found, fmt.Errorf("%w: "+format, append([]any{pawl.ErrCorrupt}, args...)...))
}

func (c *check) all() error {
	removed := make(map[pawl.ID]bool) // runs being removed: some of their rows may be gone
	steps := []func(){
		func() { c.ended(removed) },
		func() { c.runs() },
		func() { c.ids() },
		func() { c.places() },
		func() { c.foundRows(removed) },
		func() { c.belong(removed) },
	}
	for _, step := range steps {
		step()
		switch {
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case len(c.found) >= maxFound:
			return errEnough
		}
	}
	return nil
}

// look calls fn for each row whose key has the prefix.
func (c *check) look(t *driver.Table, prefix []byte, fn func(key, content []byte, damage error)) {
	err := c.each(t, prefix, func(key, content []byte, damage error) error {
		fn(key, content, damage)
		return nil
	})
	if err != nil {
		c.found = append(c.found, err)
	}
}

// every calls fn for each sound row of a table.
func (c *check) every(t *driver.Table, fn func(key, content []byte)) {
	err := c.each(t, nil, func(key, content []byte, damage error) error {
		if damage != nil {
			c.found = append(c.found, damage)
		} else {
			fn(key, content)
		}
		if c.ctx.Err() != nil || len(c.found) >= maxFound {
			return errStop
		}
		return nil
	})
	if err != nil {
		c.found = append(c.found, err)
	}
}

// ended compares the removal times of runs with the runs.
func (c *check) ended(removed map[pawl.ID]bool) {
	c.every(tableEnded, func(key, _ []byte) {
		until, run, err := parseEndedKey(key)
		if err != nil {
			c.found = append(c.found, err)
			return
		}
		row, err := c.run(run)
		switch {
		case err != nil: // reported by runs
		case row == nil:
			removed[run] = true
		case row.open():
			c.wrong("run %s is open, and is to be removed at %v", run, until)
		}
	})
}

// runs checks each run with its journal and its values.
func (c *check) runs() {
	c.every(tableRuns, func(key, _ []byte) {
		if len(key) != len(pawl.ID{}) {
			c.wrong("key %x of table %s", key, tableRuns)
			return
		}
		id := pawl.ID(key)
		row, err := c.run(id)
		if err != nil {
			c.found = append(c.found, err)
			return
		}
		if known, err := c.find(row.Flow, row.ID); err != nil || known != id {
			c.wrong("run %s is not the one that workflow %s %q names", id, row.Flow, row.ID)
		}
		if blocked, _ := c.get(tableBlocked, key); (row.Status == Blocked) != (blocked != nil) {
			c.wrong("run %s is %s, and table %s says otherwise", id, row.Status, tableBlocked)
		}
		c.journal(id, row)
		c.spare(id, row)
		c.values(id, row)
		c.signals(id, row)
		c.streams(id)
		c.hasPlaces(id, row)
		c.isFound(id, row)
	})
}

// journal checks the entries of a run: in each scope they are consecutive, and only the last
// may be pending. A branch must begin before it has entries.
func (c *check) journal(id pawl.ID, row *runRow) {
	journal, err := c.entries(id, row.Journal)
	if err != nil {
		c.found = append(c.found, err)
		return
	}
	scopes := make(map[string]map[int]*entry)
	begun := map[string]bool{"": true, undoScope: true}
	for _, e := range journal {
		if !begun[e.Scope] {
			c.wrong("run %s: %s is of a branch that did not begin", id, e)
		}
		if e.State == EntryBegun || e.Kind == KindUndo {
			begun[stepName(e.Scope, e.Name, e.Occurrence)] = true
		}
		if e.Kind == KindVersion {
			continue
		}
		if scopes[e.Scope] == nil {
			scopes[e.Scope] = make(map[int]*entry)
		}
		if other := scopes[e.Scope][e.At]; other != nil {
			c.wrong("run %s: entries %d and %d are both call %d of scope %q", id, other.seq, e.seq, e.At, e.Scope)
		}
		scopes[e.Scope][e.At] = e
	}
	for name, calls := range scopes {
		for at := range len(calls) {
			switch e := calls[at]; {
			case e == nil:
				c.wrong("run %s: call %d of scope %q is missing", id, at, name)
			case e.State == EntryPending && at < len(calls)-1:
				c.wrong("run %s: %s is pending, and others follow it", id, e)
			}
		}
	}
}

// spare looks for rows in the journal that is not in use. Only a Restart leaves rows there.
func (c *check) spare(id pawl.ID, row *runRow) {
	for _, t := range [...]*driver.Table{tableSteps, tableBlobs} {
		c.look(t, id[:], func(key, _ []byte, _ error) {
			seq := number32(key)
			which := journalOf(seq)
			switch {
			case which == row.Journal || which == row.spare() && row.Restarts > 0:
			case t == tableBlobs && (seq == inputSeq || seq == outputSeq):
			default:
				c.wrong("run %s uses journal %d, and table %s has row %d of journal %d", id, row.Journal, t, ordinal(seq), which)
			}
		})
	}
}

// values requires that a run's large values exist, and that there are no others.
func (c *check) values(id pawl.ID, row *runRow) {
	c.look(tableBlobs, id[:], func(key, content []byte, damage error) {
		if damage != nil {
			return // reported by belong
		}
		switch seq := uint32(number32(key)); seq {
		case inputSeq:
			if row.Input != nil {
				c.wrong("run %s has its input in its row, and another one", id)
			}
		case outputSeq:
			if row.Output != nil {
				c.wrong("run %s has its output in its row, and another one", id)
			}
			if row.Status != Done {
				c.wrong("run %s is %s, and has an output", id, row.Status)
			}
		default:
			if journalOf(seq) != row.Journal {
				return // reported by spare
			}
			if e, err := c.entry(id, seq); err == nil && (e == nil || !e.Apart) {
				c.wrong("run %s: value %d belongs to no entry", id, seq)
			}
		}
	})
	if !row.soundValues() {
		c.wrong("run %s is %s, and its row has an input or output that no build writes", id, row.Status)
	}
	if _, err := c.input(id, row); err != nil {
		c.found = append(c.found, err)
	}
	if row.Status == Done {
		if _, err := c.output(id, row); err != nil {
			c.found = append(c.found, err)
		}
	}
	c.look(tableSteps, journalPrefix(id, row.Journal), func(key, content []byte, damage error) {
		if damage != nil {
			return
		}
		if e, err := parseEntry(key, content); err == nil && e.Apart {
			if b, err := c.blob(id, e.seq); err != nil {
				c.found = append(c.found, err)
			} else if len(b) != e.Size {
				c.wrong("run %s: the value of %s has %d bytes, its entry says %d", id, e, len(b), e.Size)
			}
		}
	})
}

// signals counts the unconsumed signals, and requires that answers are to signals.
func (c *check) signals(id pawl.ID, row *runRow) {
	unread := 0
	c.look(tableSignals, id[:], func(key, _ []byte, damage error) {
		if unread++; number(key) > row.Signals {
			c.wrong("run %s: signal %d came, and %d are counted", id, number(key), row.Signals)
		}
	})
	c.look(tableAnswers, id[:], func(key, _ []byte, _ error) {
		if len(key) != len(id)+8 || number(key) > row.Signals {
			c.wrong("run %s: answer %x is to no signal, and %d are counted", id, key[len(id):], row.Signals)
		}
	})
	if unread != row.Unread {
		c.wrong("run %s: %d signals are unread, and %d are counted", id, unread, row.Unread)
	}
}

// ids requires that each name leads to a run with that name.
func (c *check) ids() {
	c.every(tableIDs, func(key, content []byte) {
		flow, id, _ := bytes.Cut(key, []byte{0})
		if len(content) != len(pawl.ID{}) {
			c.wrong("the row of workflow %s %q", flow, id)
			return
		}
		row, err := c.run(pawl.ID(content))
		if err == nil && (row == nil || row.Flow != string(flow) || row.ID != string(id)) {
			c.wrong("workflow %s %q leads to run %x, which is another", flow, id, content)
		}
	})
}

// belong requires that each row belongs to a run that exists.
func (c *check) belong(removed map[pawl.ID]bool) {
	for _, t := range [...]*driver.Table{tableSteps, tableBlobs, tableSignals, tableSeen, tableAnswers, tablePublished, tableStreams, tableItems, tableBlocked} {
		var last pawl.ID
		known := false
		c.every(t, func(key, _ []byte) {
			if len(key) < len(last) {
				c.wrong("key %x of table %s", key, t)
				return
			}
			if id := pawl.ID(key[:len(last)]); !known || id != last {
				row, err := c.run(id)
				last, known = id, true
				if err == nil && row == nil && !removed[id] {
					c.wrong("table %s has rows of run %s, which is not there", t, id)
				}
			}
		})
	}
}

// number32 returns the seq at the end of a key.
func number32(key []byte) (n uint32) {
	for _, b := range key[len(key)-4:] {
		n = n<<8 | uint32(b)
	}
	return n
}
