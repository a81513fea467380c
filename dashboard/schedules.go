package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/schedule"
)

// schedulesPage is one page of schedules.
type schedulesPage struct {
	admin.ScheduleList
	NextLink string
}

func schedules(q *request) error {
	p := new(schedulesPage)
	var err error
	if p.ScheduleList, err = q.d.admin.Schedules().List(q.ctx, admin.ScheduleQuery{After: q.Form.Get("after"), Limit: pageSize}); err != nil {
		return err
	}
	if p.Next != "" {
		p.NextLink = link("schedules", "after", p.Next)
	}
	return q.show("schedules", "schedules", "Schedules", p, q.command("sched", "list"))
}

// schedulePage is what the page of a schedule shows.
type schedulePage struct {
	*admin.Schedule
	History []schedule.Entry // newest first
	Zone    string
	Payload *value
	Hidden  bool
}

func oneSchedule(q *request) error {
	name := q.Form.Get("name")
	s, err := q.d.admin.Schedules().Show(q.ctx, name, 10)
	if err != nil {
		return err
	}
	p := &schedulePage{Schedule: s, Zone: s.Terms.Zone, Hidden: !q.Can(ViewPayload)}
	if p.Zone == "" {
		p.Zone = "UTC"
	}
	if s.Job != nil {
		p.Payload = q.valueOf(s.Job.Payload)
	} else if s.Run != nil {
		p.Payload = q.valueOf(s.Run.Input)
	}
	var after uint64
	if s.Entries > pageSize {
		after = s.Entries - pageSize
	}
	if p.History, err = q.d.admin.Schedules().History(q.ctx, name, after); err != nil {
		return err
	}
	slices.Reverse(p.History)
	return q.show("schedule", "schedules", "Schedule "+name, p, q.command("sched", "show", name), q.command("sched", "history", name))
}

// Clock writes a tick as the clock of the schedule shows it.
func (p *schedulePage) Clock(t time.Time) string {
	zone, err := schedule.Location(p.Terms.Zone)
	if err != nil {
		zone = time.UTC
	}
	return t.In(zone).Format("Mon 2006-01-02 15:04:05 -07:00")
}

// scheduleEffects say what a verb does to a schedule.
var scheduleEffects = map[admin.Verb]string{
	admin.Pause:  "It fires no ticks until it is resumed, even after a restart of the app. Jobs that it has enqueued stay.",
	admin.Resume: "It fires again from its next tick on. The ticks of the pause do not fire.",
	"trigger":    "It fires once now, even if it is paused or an earlier job is still there. Its ticks do not move.",
}

// scheduleChange changes a schedule.
func scheduleChange(path string, verb admin.Verb) change {
	title := strings.ToUpper(string(verb[:1])) + string(verb[1:])
	words := func(q *request, name string) string {
		w := []string{"sched", string(verb), name}
		if note := q.PostForm.Get("note"); verb == admin.Pause && note != "" {
			w = append(w, "--note", note)
		}
		return q.command(w...)
	}
	return change{path: path, action: Schedule,
		plan: func(q *request) (plan, error) {
			name := q.Form.Get("name")
			_, err := q.d.admin.Schedules().Show(q.ctx, name, 0)
			p := plan{Title: title + " schedule " + name, Lines: []string{scheduleEffects[verb]}, Keep: url.Values{"name": {name}},
				Button: title + " the schedule", Back: link("schedule", "name", name), Commands: []string{words(q, name)}}
			if verb == admin.Pause {
				p.Fields = []field{{Name: "note", Label: "Note", Help: "says why, for other operators"}}
			}
			return p, err
		},
		do: func(q *request) (result, error) {
			name := q.Form.Get("name")
			r := result{Title: title + " schedule " + name, OK: true, Back: link("schedule", "name", name), target: name, Commands: []string{words(q, name)}}
			if verb == "trigger" {
				id, err := q.d.admin.Schedules().Trigger(q.ctx, name)
				r.Lines = []string{"It fired " + id.String() + "."}
				return r, err
			}
			a := admin.ScheduleAction{Verb: verb}
			if verb == admin.Pause {
				a.Note = q.PostForm.Get("note")
			}
			r.Lines = []string{"The schedule was " + string(verb) + "d."}
			return r, q.d.admin.Schedules().Do(q.ctx, a, name)
		},
	}
}
