package dashboard

import (
	"net/url"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/group"
)

// groupRow is a group with the name of its state.
type groupRow struct {
	group.Status
	State string // open, closed, ended, or damaged
}

func groupRowOf(s group.Status) groupRow { return groupRow{s, admin.GroupOf(&s).State} }

// groupListPage is one page of groups.
type groupListPage struct {
	Groups   []groupRow
	NextLink string
}

func groups(q *request) error {
	list, next, err := q.d.admin.Groups().List(q.ctx, q.Form.Get("after"), pageSize)
	if err != nil {
		return err
	}
	p := new(groupListPage)
	for _, s := range list {
		p.Groups = append(p.Groups, groupRowOf(s))
	}
	if next != "" {
		p.NextLink = link("groups", "after", next)
	}
	return q.show("groups", "groups", "Groups of jobs", p, q.command("group", "list"))
}

// groupPage is what the page of a group shows.
type groupPage struct {
	groupRow
	Ended     int // members that are not pending
	Callbacks []callback
}

// callback is a job that a group enqueues at its end.
type callback struct {
	When string
	group.Callback
}

func oneGroup(q *request) error {
	s, err := q.d.admin.Groups().Show(q.ctx, q.Form.Get("name"))
	if err != nil {
		return err
	}
	p := &groupPage{groupRow: groupRowOf(s), Ended: s.Total - s.Pending}
	for _, c := range []callback{{"all members have ended", s.Done}, {"all members have succeeded", s.Success}} {
		if !c.ID.IsZero() {
			p.Callbacks = append(p.Callbacks, c)
		}
	}
	return q.show("group", "groups", "Group "+s.Name, p, q.command("group", "show", s.Name), q.command("job", "list", "--group", s.Name))
}

// groupChange changes a group. Do returns what it has done.
func groupChange(path string, action Action, verb, title, effect string, do func(q *request, name string) (string, error)) change {
	return change{path: path, action: action,
		plan: func(q *request) (plan, error) {
			s, err := q.d.admin.Groups().Show(q.ctx, q.Form.Get("name"))
			return plan{
				Title: title + " " + s.Name, Lines: []string{effect, count(s.Pending, "member") + " of " + number(s.Total) + " pending."},
				Keep: url.Values{"name": {s.Name}}, Button: title, Harsh: true, Back: link("group", "name", s.Name),
				Commands: []string{q.command("group", verb, s.Name)},
			}, err
		},
		do: func(q *request) (result, error) {
			name := q.Form.Get("name")
			r := result{Title: title + " " + name, OK: true, Back: link("group", "name", name), target: name, Commands: []string{q.command("group", verb, name)}}
			said, err := do(q, name)
			r.Lines = []string{said}
			return r, err
		},
	}
}

func closeGroup(q *request, name string) (string, error) {
	return "The group was closed.", q.d.admin.Groups().Close(q.ctx, name)
}

func cancelGroup(q *request, name string) (string, error) {
	n, err := q.d.admin.Groups().Cancel(q.ctx, name)
	return count(n, "member") + " cancelled. One that runs ends when its handler returns.", err
}
