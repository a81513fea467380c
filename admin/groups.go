package admin

import (
	"context"
	"errors"

	"github.com/gopawl/pawl/group"
)

// Groups is what an operator does to groups of jobs. The guarantees of [Admin] apply here too. Methods that
// take a name return [pawl.ErrNotFound] if there is no such group.
type Groups interface {
	// List reads one page of groups, in the order of their names: up to limit groups after the name after,
	// "" for the first page. Next is where the next page begins, "" after the last.
	List(ctx context.Context, after string, limit int) (groups []group.Status, next string, err error)

	// Show reads one group.
	Show(ctx context.Context, name string) (group.Status, error)

	// Close closes a group; see [group.Close].
	Close(ctx context.Context, name string) error

	// Cancel cancels the pending members of a group, and returns how many; see [group.Cancel].
	Cancel(ctx context.Context, name string) (int, error)

	// Rows reads the groups after a name in the form in which they are stored, for an [Export]: as many as
	// fit into an answer, none at the end. See [group.ReadRows].
	Rows(ctx context.Context, after string) ([]group.Rows, error)

	// RestoreRows stores groups in this form, all or none, for an [Import]. See [group.Restore].
	RestoreRows(ctx context.Context, rows ...*group.Rows) error
}

// directGroups carries out operations on groups in this process.
type directGroups struct{ direct }

// Groups implements Admin.
func (d direct) Groups() Groups { return directGroups{d} }

type clientGroups struct{ c *client }

// Groups implements Admin.
func (c *client) Groups() Groups { return clientGroups{c} }

type groupsRequest struct {
	After string
	Limit int
}

type groupsPage struct {
	Groups []group.Status
	Next   string
}

var opGroups = define(operation[groupsRequest, groupsPage]{
	path: "groups/list", work: lists, large: always[groupsRequest],
	do: func(ctx context.Context, a Admin, r *groupsRequest) (p groupsPage, err error) {
		p.Groups, p.Next, err = a.Groups().List(ctx, r.After, r.Limit)
		return p, err
	},
	check: func(r *groupsRequest, p *groupsPage) error {
		return checkList(len(p.Groups), r.Limit, r.After, p.Next)
	},
})

func (g clientGroups) List(ctx context.Context, after string, limit int) ([]group.Status, string, error) {
	p, err := ask(ctx, g.c, opGroups, groupsRequest{after, limit})
	return p.Groups, p.Next, err
}

func (d directGroups) List(ctx context.Context, after string, limit int) (list []group.Status, next string, err error) {
	limit, err = pageSize(limit)
	if err != nil {
		return nil, "", err
	}
	q, err := optional[group.Queue](d.q, "groups")
	if err != nil {
		return nil, "", err
	}
	if list, err = group.List(ctx, q, after, limit); len(list) == limit {
		next = list[limit-1].Name
	}
	return list, next, err
}

// groupName names a group in a request.
type groupName struct{ Name string }

var opShowGroup = define(operation[groupName, group.Status]{
	path: "groups/show",
	do: func(ctx context.Context, a Admin, r *groupName) (group.Status, error) {
		return a.Groups().Show(ctx, r.Name)
	},
	check: func(r *groupName, s *group.Status) error {
		if s.Name != r.Name {
			return errors.New("it has another group")
		}
		return nil
	},
})

func (g clientGroups) Show(ctx context.Context, name string) (group.Status, error) {
	return ask(ctx, g.c, opShowGroup, groupName{name})
}

func (d directGroups) Show(ctx context.Context, name string) (group.Status, error) {
	return using(d.direct, "groups", func(q group.Queue) (group.Status, error) { return group.Get(ctx, q, name) })
}

var opCloseGroup = defineChange("groups/close", func(ctx context.Context, a Admin, r *groupName) error {
	return a.Groups().Close(ctx, r.Name)
})

func (g clientGroups) Close(ctx context.Context, name string) error {
	return send(ctx, g.c, opCloseGroup, groupName{name})
}

func (d directGroups) Close(ctx context.Context, name string) error {
	if _, err := d.Show(ctx, name); err != nil { // so that it opens a file for writing only if needed
		return err
	}
	return usingTo(d.direct, "groups", func(q group.Queue) error { return group.Close(ctx, q, name) })
}

// cancelledMembers is how many members a call has cancelled.
type cancelledMembers struct{ Cancelled int }

var opCancelGroup = define(operation[groupName, cancelledMembers]{
	path: "groups/cancel", changes: true, work: lists,
	do: func(ctx context.Context, a Admin, r *groupName) (cancelledMembers, error) {
		n, err := a.Groups().Cancel(ctx, r.Name)
		return cancelledMembers{n}, err
	},
})

func (g clientGroups) Cancel(ctx context.Context, name string) (int, error) {
	c, err := ask(ctx, g.c, opCancelGroup, groupName{name})
	return c.Cancelled, err
}

func (d directGroups) Cancel(ctx context.Context, name string) (int, error) {
	if _, err := d.Show(ctx, name); err != nil {
		return 0, err
	}
	return group.Cancel(ctx, d.q, name)
}

// GroupView is a group in JSON, with the conventions of [Job].
type GroupView struct {
	Name      Text    `json:"name"`
	State     string  `json:"state"` // open, closed, ended or damaged
	Total     int     `json:"total"`
	Pending   int     `json:"pending"`
	Succeeded int     `json:"succeeded"`
	Dead      int     `json:"dead"`
	Removed   int     `json:"removed"`
	CreatedAt Stamp   `json:"created_at"`
	EndedAt   Stamp   `json:"ended_at"`
	Done      *string `json:"done"`    // the ID of the callback; null: none
	Success   *string `json:"success"` // as done

	DoneEnqueued    bool `json:"done_enqueued"`
	SuccessEnqueued bool `json:"success_enqueued"`
}

// GroupOf returns a group as JSON.
func GroupOf(s *group.Status) GroupView {
	v := GroupView{
		Name: Text(s.Name), State: "open", Total: s.Total, Pending: s.Pending, Succeeded: s.Succeeded, Dead: s.Dead, Removed: s.Removed,
		CreatedAt: Stamp{s.Created}, EndedAt: Stamp{s.Ended}, Done: idOrNull(s.Done.ID), Success: idOrNull(s.Success.ID),
		DoneEnqueued: s.Done.Enqueued, SuccessEnqueued: s.Success.Enqueued,
	}
	switch {
	case s.Damaged:
		v.State = "damaged"
	case s.Closed && s.Pending == 0:
		v.State = "ended"
	case s.Closed:
		v.State = "closed"
	}
	return v
}
