package admin

import (
	"context"
	"errors"

	"github.com/gopawl/pawl/group"
)

type groupRowsRequest struct{ After string }

// groupRows are some groups as they are stored.
type groupRows struct{ Groups []group.Rows }

var opGroupRows = define(operation[groupRowsRequest, groupRows]{
	path: "groups/rows", work: lists, large: always[groupRowsRequest],
	do: func(ctx context.Context, a Admin, r *groupRowsRequest) (groupRows, error) {
		list, err := a.Groups().Rows(ctx, r.After)
		return groupRows{list}, err
	},
	check: func(r *groupRowsRequest, l *groupRows) error {
		last := r.After
		for i := range l.Groups {
			if l.Groups[i].Name <= last {
				return errors.New("its groups are not in the order of their names")
			}
			last = l.Groups[i].Name
		}
		return checkPage(len(l.Groups), group.MaxListed, "", "")
	},
})

func (g clientGroups) Rows(ctx context.Context, after string) ([]group.Rows, error) {
	l, err := ask(ctx, g.c, opGroupRows, groupRowsRequest{after})
	return l.Groups, err
}

func (d directGroups) Rows(ctx context.Context, after string) ([]group.Rows, error) {
	q, err := d.queue()
	if err != nil {
		return nil, err
	}
	return group.ReadRows(ctx, q, after, group.MaxListed)
}

type restoreGroupsRequest struct{ Groups []*group.Rows }

var opRestoreGroups = define(operation[restoreGroupsRequest, nothing]{
	path: "groups/restore", changes: true,
	do: func(ctx context.Context, a Admin, r *restoreGroupsRequest) (nothing, error) {
		for _, rows := range r.Groups {
			if rows == nil {
				return nothing{}, invalid("groups", "one is null")
			}
		}
		return nothing{}, a.Groups().RestoreRows(ctx, r.Groups...)
	},
})

func (g clientGroups) RestoreRows(ctx context.Context, rows ...*group.Rows) error {
	_, err := ask(ctx, g.c, opRestoreGroups, restoreGroupsRequest{rows})
	return err
}

func (d directGroups) RestoreRows(ctx context.Context, rows ...*group.Rows) error {
	q, err := d.queue()
	if err != nil {
		return err
	}
	return group.Restore(ctx, q, rows...)
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
	x := &exportGroup{Name: Text(r.Name), Form: r.Form, Row: r.Row, Callbacks: make([]exportCallback, len(r.Callbacks))}
	for i, c := range r.Callbacks {
		x.Callbacks[i] = exportCallback(c)
	}
	return x
}

func (x *exportGroup) rows() *group.Rows {
	r := &group.Rows{Name: string(x.Name), Form: x.Form, Row: x.Row, Callbacks: make([]group.CallbackRow, len(x.Callbacks))}
	for i, c := range x.Callbacks {
		r.Callbacks[i] = group.CallbackRow(c)
	}
	return r
}
