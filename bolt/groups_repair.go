package bolt

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// countMember counts a job, if it is a pending or dead member of a group.
func countMember(groups map[string]*driver.GroupRow, e *pawl.Envelope) {
	if e.Group == "" || e.State == pawl.Completed {
		return
	}
	row := groups[e.Group]
	if row == nil {
		row = new(driver.GroupRow)
		groups[e.Group] = row
	}
	if e.State == pawl.Dead {
		row.Dead++
	} else {
		row.Pending++
	}
}

// comparedGroups requires that each group counts what the scan found.
func (c *check) comparedGroups() {
	err := driver.EachGroup(&tables{tx: c.jobs.Tx()}, "", func(name string, row *driver.GroupRow, damage error) bool {
		found := c.groups[name]
		if delete(c.groups, name); found == nil {
			found = new(driver.GroupRow)
		}
		switch {
		case damage != nil:
			c.wrong("group %q: %w", name, damage)
		case row.Pending != found.Pending || row.Dead != found.Dead:
			c.wrong("group %q counts %d pending and %d dead members, a scan finds %d and %d", name, row.Pending, row.Dead, found.Pending, found.Dead)
		case row.Total != row.Pending+row.Succeeded+row.Dead+row.Removed:
			c.wrong("group %q has %d members, and counts %d that are pending, %d that succeeded, %d dead and %d removed",
				name, row.Total, row.Pending, row.Succeeded, row.Dead, row.Removed)
		}
		return !c.done()
	})
	if err != nil {
		c.wrong("groups: %w", err)
	}
	for name, found := range c.groups {
		c.wrong("group %q has no row, a scan finds %d pending and %d dead members", name, found.Pending, found.Dead)
	}
}

// repairGroups recounts the members of all groups. Members that are lost count as removed.
func (s *salvor) repairGroups() error {
	found := make(map[string]*driver.GroupRow)
	err := s.eachKey(bucketJobs, nil, func(t *txn, _ *table, key []byte) {
		j, err := t.record(pawl.ID(key))
		if err != nil || j.Group == "" {
			return
		}
		e := *j.Envelope
		if at, err := t.where(&e); err == nil {
			e.State = at.state
		}
		countMember(found, &e)
	})
	if err != nil {
		return err
	}
	return s.update(func(t *txn) {
		var gone []string
		rows := make(map[string]*driver.GroupRow)
		t.fail(driver.EachGroup(t.others(), "", func(name string, row *driver.GroupRow, damage error) bool {
			if damage != nil {
				gone = append(gone, name)
			} else {
				rows[name] = row
			}
			return true
		}))
		for _, name := range gone {
			t.fail(driver.DeleteGroup(t.others(), name))
			t.changed = true
		}
		for name := range found {
			if rows[name] == nil {
				rows[name] = new(driver.GroupRow)
			}
		}
		for name, row := range rows {
			was := *row
			row.Pending, row.Dead = 0, 0
			if is := found[name]; is != nil {
				row.Pending, row.Dead = is.Pending, is.Dead
			}
			row.Removed = max(row.Total-row.Pending-row.Succeeded-row.Dead, 0)
			row.Total = row.Pending + row.Succeeded + row.Dead + row.Removed
			if *row != was || found[name] != nil {
				t.fail(driver.PutGroup(t.others(), name, row))
				t.changed = true
			}
		}
	})
}
