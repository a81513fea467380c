package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
)

// Groups are stored after the jobs, which are their members. An import that ends early leaves them out, and the next
// import stores them.

// groups writes the groups. They come before the jobs, so that a callback that is enqueued during the export
// is there as a job or waits, and is not lost.
func (x *exporter) groups(ctx context.Context) error {
	for after := ""; ; {
		list, err := x.from.Groups().Rows(ctx, after)
		switch {
		case errors.As(err, new(*UnsupportedError)): // the engine keeps no groups
			return nil
		case err != nil || len(list) == 0:
			return err
		}
		for i := range list {
			after = list[i].Name
			if list[i].Form == 0 {
				err = x.damage(pawl.ID{}, fmt.Errorf("%w: the row of group %q", pawl.ErrCorrupt, list[i].Name))
			} else {
				x.done.Groups++
				err = x.to.Encode(exportLine{Group: exportGroupOf(&list[i])})
			}
			if err != nil {
				return err
			}
		}
	}
}

// storedGroup is a group to store, and its position in the export.
type storedGroup struct {
	name   string
	offset int64
}

// exportedGroup checks the line of a group.
func (c *checking) exportedGroup(x *exportGroup, offset int64) error {
	rows := x.rows()
	callbacks, signed, err := rows.Jobs()
	switch {
	case err != nil:
		return err
	case signed && !c.opts.KeepIDs:
		return fmt.Errorf("a callback of group %q is signed, and its signature names its ID: import with KeepIDs", truncate(rows.Name))
	case c.grouped[rows.Name]:
		return fmt.Errorf("group %q has a line already", truncate(rows.Name))
	}
	c.grouped[rows.Name] = true
	c.importer.groups = append(c.importer.groups, storedGroup{rows.Name, offset})
	for _, id := range callbacks {
		c.callbacks[id] = true
	}
	return nil
}

// leaveOutGroups finds which groups the target has, by their names.
func (m *importer) leaveOutGroups(ctx context.Context) error {
	var left []storedGroup
	for _, g := range m.groups {
		s, err := m.to.Groups().Show(ctx, g.name)
		switch {
		case errors.Is(err, pawl.ErrNotFound), err == nil && s.Created.IsZero(): // nobody made it
			left = append(left, g)
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return fmt.Errorf("look which groups are there already: %w; nothing was stored", err)
		case !m.opts.SkipExisting:
			return fmt.Errorf("line %d: group %q: %w: the target has a group of this name; nothing was stored; SkipExisting leaves it out",
				m.in.number(g.offset), truncate(g.name), pawl.ErrConflict)
		}
	}
	m.done.GroupsSkipped = int64(len(m.groups) - len(left))
	m.groups = left
	return nil
}

// storeGroups stores the groups, portion by portion.
func (m *importer) storeGroups(ctx context.Context) error {
	var portion []*group.Rows
	size := 0
	for _, g := range m.groups {
		rows, n, err := m.rereadGroup(g)
		if err != nil {
			return err
		}
		if len(portion) > 0 && size+n+lineExtra > portionBytes {
			if err := m.storeSomeGroups(ctx, portion); err != nil {
				return err
			}
			portion, size = nil, 0
		}
		portion, size = append(portion, rows), size+n+lineExtra
		m.read += int64(n)
	}
	return m.storeSomeGroups(ctx, portion)
}

func (m *importer) storeSomeGroups(ctx context.Context, portion []*group.Rows) error {
	if len(portion) == 0 {
		return nil
	}
	if err := m.to.Groups().RestoreRows(ctx, portion...); err != nil {
		return fmt.Errorf("group %q and those stored with it: perhaps not stored: %w; the jobs and %d groups were stored before",
			truncate(portion[0].Name), err, m.done.Groups)
	}
	m.done.Groups += int64(len(portion))
	m.progress(m.read)
	return nil
}

// rereadGroup reads the line of a group again, and names its callbacks as the target does.
func (m *importer) rereadGroup(g storedGroup) (*group.Rows, int, error) {
	l, size, err := m.reread(g.offset)
	if err != nil {
		return nil, 0, err
	}
	if l.Group == nil || string(l.Group.Name) != g.name {
		return nil, 0, m.unread(g.offset, errChanged)
	}
	rows := l.Group.rows()
	if err := rows.Rename(m.newID); err != nil {
		return nil, 0, m.unread(g.offset, errChanged)
	}
	return rows, size, nil
}
