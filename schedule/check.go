package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// maxFound limits how many findings a check returns.
const maxFound = 100

// Check requires that each schedule and each entry of a history can be read, and that the indexes
// lead to each schedule that is due or has waiting ticks: without them it does not fire. Check reads
// everything in one transaction, and joins up to a hundred findings in one error. Each matches
// [pawl.ErrCorrupt], or [pawl.ErrNewerFormat] for a row that a newer build wrote. It returns nil if
// there are none.
func (r *Reader) Check(ctx context.Context) error {
	var found []error
	err := r.source.ViewRows(ctx, func(tx driver.Reader) error {
		c := check{tx: tx, ctx: ctx}
		err := errors.Join(c.schedules(), c.history())
		found = c.found
		return err
	})
	return errors.Join(append(found, err)...)
}

// check is the state of one Check.
type check struct {
	tx    driver.Reader
	ctx   context.Context
	found []error
}

// more reports whether the check goes on.
func (c *check) more() bool { return len(c.found) < maxFound && c.ctx.Err() == nil }

// schedules checks the rows of the schedules, and then the indexes.
func (c *check) schedules() error {
	type index struct {
		table *driver.Table
		key   []byte
		name  string
	}
	var all []index
	err := each(c.tx, "", func(name string, row *row, damage error) bool {
		switch {
		case damage != nil:
			c.found = append(c.found, fmt.Errorf("schedule %q: %w", name, damage))
			return c.more()
		case row.Due != 0:
			all = append(all, index{tableDue, dueKey(row.Due, name), name})
		}
		if row.waits() {
			all = append(all, index{tableBuffered, nameKey(name), name})
		}
		return c.more()
	})
	for _, i := range all {
		if err != nil || !c.more() {
			return errors.Join(err, c.ctx.Err())
		}
		listed := false
		err = present(c.tx.Scan(i.table, driver.Span{Prefix: i.key, Limit: 1}, func(key, _ []byte) bool {
			listed = bytes.Equal(key, i.key)
			return false
		}))
		if err == nil && !listed {
			c.found = append(c.found, fmt.Errorf("%w: schedule %q does not fire, since table %s does not list it: pause the schedule, and resume it",
				pawl.ErrCorrupt, i.name, i.table))
		}
	}
	return errors.Join(err, c.ctx.Err())
}

// history checks the entries of all histories.
func (c *check) history() error {
	if !c.more() {
		return nil
	}
	err := present(c.tx.Scan(tableHistory, driver.Span{}, func(key, value []byte) bool {
		if _, err := parseEntry(key, value, new(entry)); err != nil {
			c.found = append(c.found, err)
		}
		return c.more()
	}))
	return errors.Join(err, c.ctx.Err())
}
