package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
)

var groupRows = defineRows(rowKind[group.Rows]{
	one:  "group",
	of:   func(a Admin) rowStore[group.Rows] { return a.Groups() },
	head: func(r *group.Rows) (string, int) { return r.Name, r.Form },
	line: func(l *exportLine) *group.Rows {
		if l.Group == nil {
			return nil
		}
		return l.Group.rows()
	},
	rename: (*group.Rows).Rename,
	most:   group.MaxListed,
})

func (g clientGroups) Rows(ctx context.Context, after string) ([]group.Rows, error) {
	return groupRows.ask(ctx, g.c, after)
}

func (d directGroups) Rows(ctx context.Context, after string) ([]group.Rows, error) {
	return using(d.direct, "groups", func(q group.Queue) ([]group.Rows, error) { return group.ReadRows(ctx, q, after, group.MaxListed) })
}

func (g clientGroups) RestoreRows(ctx context.Context, rows ...*group.Rows) error {
	return groupRows.send(ctx, g.c, rows)
}

func (d directGroups) RestoreRows(ctx context.Context, rows ...*group.Rows) error {
	return usingTo(d.direct, "groups", func(q group.Queue) error { return group.Restore(ctx, q, rows...) })
}

// exportGroup is a line of an export: a group in JSON. Like those of [Job], its field names are stable. The rows
// have the form that they have in the file: see "Groups in an export" in docs/internals/format.md.
type exportGroup struct {
	Name      Text             `json:"name"`
	Form      int              `json:"form"`
	Row       []byte           `json:"row"`
	Callbacks []exportCallback `json:"callbacks"` // in the order of which
}

type exportCallback struct {
	Which int    `json:"which"`
	Value []byte `json:"value"`
}

func exportGroupOf(r *group.Rows) *exportGroup {
	callbacks := each(r.Callbacks, func(c group.CallbackRow) exportCallback { return exportCallback(c) })
	return &exportGroup{Name: Text(r.Name), Form: r.Form, Row: r.Row, Callbacks: callbacks}
}

func (x *exportGroup) rows() *group.Rows {
	callbacks := each(x.Callbacks, func(c exportCallback) group.CallbackRow { return group.CallbackRow(c) })
	return &group.Rows{Name: string(x.Name), Form: x.Form, Row: x.Row, Callbacks: callbacks}
}

func (x *exporter) groups(ctx context.Context) error {
	return groupRows.export(ctx, x, func(r *group.Rows) error {
		x.done.Groups++
		return x.to.Encode(exportLine{Group: exportGroupOf(r)})
	})
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
	c.importer.groups = append(c.importer.groups, namedLine{rows.Name, offset})
	for _, id := range callbacks {
		c.callbacks[id] = true
	}
	return nil
}

// leaveOutGroups finds which groups the target has.
func (m *importer) leaveOutGroups(ctx context.Context) error {
	left, err := groupRows.leaveOut(m, m.groups, func(name string) (bool, error) {
		s, err := m.to.Groups().Show(ctx, name)
		if errors.Is(err, pawl.ErrNotFound) || err == nil && s.Created.IsZero() { // nobody made it
			return false, nil
		}
		return true, err
	})
	m.done.GroupsSkipped = int64(len(m.groups) - len(left))
	m.groups = left
	return err
}
