package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// statesOf are the states of jobs that a verb takes, where a selection names none.
var statesOf = map[admin.Verb][]pawl.State{
	admin.Retry:  {pawl.Dead},
	admin.Delete: {pawl.Dead},
	admin.RunNow: {pawl.Delayed},
	admin.Cancel: {pawl.Ready, pawl.Delayed, pawl.Leased},
}

// effects say what a verb does to jobs.
var effects = map[admin.Verb]string{
	admin.Retry:  "They become ready, keep their history, and their attempts start again from 0.",
	admin.Delete: "They are removed permanently.",
	admin.RunNow: "They become ready at once.",
	admin.Cancel: "Waiting jobs become dead. Running jobs are asked to end.",
}

// past is what a verb has done.
var past = map[admin.Verb]string{admin.Retry: "retried", admin.Delete: "deleted", admin.RunNow: "made ready", admin.Cancel: "cancelled"}

// targets are the jobs of one change.
type targets struct {
	ids    []pawl.ID
	filter *admin.Filter // what still has to hold when they are changed
	more   bool          // the selection has more jobs than one change takes
	keep   url.Values
	flags  []string // of jobctl
	exact  bool     // the flags select the same jobs
}

// jobChange changes jobs: those that the request names by id, or all that its filter selects.
func jobChange(path string, action Action, verb admin.Verb) change {
	title := strings.ToUpper(path[:1]) + strings.ReplaceAll(path[1:], "-", " ")
	return change{path: path, action: action,
		plan: func(q *request) (plan, error) {
			t, err := q.targets(verb)
			if err != nil {
				return plan{}, err
			}
			outcomes, err := q.apply(admin.Action{Verb: verb, If: t.filter, DryRun: true}, t.ids)
			if err != nil {
				return plan{}, err
			}
			p := plan{
				Title: fmt.Sprintf("%s %d of %d jobs", title, outcomes.done, len(t.ids)), Keep: t.keep, Harsh: verb == admin.Delete || verb == admin.Cancel,
				Lines: append([]string{effects[verb]}, outcomes.lines("would not be "+past[verb])...), Back: "jobs",
				Commands: []string{q.command(append([]string{"job", path}, t.flags...)...)},
			}
			if len(t.ids) == 1 {
				p.Title, p.Back = title+" job "+t.ids[0].String(), link("job", "id", t.ids[0])
			}
			if outcomes.done > 0 {
				p.Button = fmt.Sprintf("%s %s", title, count(outcomes.done, "job"))
				p.Keep.Set("most", strconv.Itoa(len(t.ids)))
			} else {
				p.Lines = append(p.Lines, "There is nothing to do.")
			}
			switch {
			case !t.more:
			case len(t.ids) < maxSelected:
				p.Lines = append(p.Lines, "There may be more: the search has used its time.")
			default:
				p.Lines = append(p.Lines, fmt.Sprintf("There are more: one change takes the first %d.", maxSelected))
			}
			if !t.exact {
				p.Lines = append(p.Lines, "The command below selects by a text that these errors contain, so it may select other jobs too.")
			}
			return p, nil
		},
		do: func(q *request) (result, error) {
			t, err := q.targets(verb)
			if err != nil {
				return result{}, err
			}
			if most, err := strconv.Atoi(q.PostForm.Get("most")); err == nil && most >= 0 && most < len(t.ids) {
				t.ids, t.more = t.ids[:most], true // what the user has confirmed
			}
			r := result{Title: title + " jobs", Back: link("jobs", "state", string(statesOf[verb][0])), target: t.name()}
			if len(t.ids) == 1 {
				r.Back = link("job", "id", t.ids[0])
			}
			outcomes, err := q.apply(admin.Action{Verb: verb, If: t.filter}, t.ids)
			r.OK = err == nil && outcomes.done == len(t.ids)
			r.Lines = append([]string{count(outcomes.done, "job") + " " + past[verb] + "."}, outcomes.lines("were not "+past[verb])...)
			if t.more {
				r.Lines = append(r.Lines, "The filter may select more jobs than this change took. Repeat it for the rest.")
			}
			return r, err
		},
	}
}

// name describes the targets for the log.
func (t *targets) name() string {
	if len(t.ids) == 1 {
		return t.ids[0].String()
	}
	return fmt.Sprintf("%d jobs: %s", len(t.ids), strings.Join(t.flags, " "))
}

// targets returns the jobs that a request names.
func (q *request) targets(verb admin.Verb) (*targets, error) {
	t := &targets{keep: make(url.Values), exact: true}
	if names := texts(q.Form["id"]); len(names) > 0 {
		for _, name := range names {
			id, err := pawl.ParseID(name)
			if err != nil {
				return nil, err
			}
			t.ids, t.flags = append(t.ids, id), append(t.flags, name)
			t.keep.Add("id", name)
		}
		if len(t.ids) > admin.MaxIDs {
			return nil, invalid("id", "%d of them, one change takes %d", len(t.ids), admin.MaxIDs)
		}
		return t, nil
	}
	if q.Form.Get("select") != "all" {
		return nil, &refusal{http.StatusBadRequest, "No job is selected.", "Go back and mark jobs, or choose all that match the filter."}
	}
	s, err := q.selection()
	if err != nil {
		return nil, err
	}
	if s.State == "" && len(s.States) == 0 {
		s.State, s.States = oneOrMore[pawl.State](words(statesOf[verb]))
	}
	for _, state := range append(slices.Clone(s.States), s.State) {
		if state != "" && !slices.Contains(statesOf[verb], state) && !(verb == admin.Delete && state == pawl.Completed) {
			return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("A %s job cannot be %s.", state, past[verb]), "Choose another state in the filter."}
		}
	}
	detail := admin.IDs
	if s.Group != "" {
		detail = admin.Summary
		s.Filter.DiedBefore = earlier(s.Filter.DiedBefore, q.Now()) // a job that dies again may belong to another group
	}
	page, err := q.find(s, detail, "", maxSelected+1, maxWork/2)
	if err != nil {
		return nil, err
	}
	for _, one := range page.Jobs {
		if one.Err == nil && len(t.ids) < maxSelected {
			t.ids = append(t.ids, one.Job.ID)
		}
	}
	t.more = page.Next != "" || len(page.Jobs) > maxSelected
	condition := s.Filter
	condition.Order, condition.Newest = "", false
	t.filter, t.exact = &condition, s.Group == ""
	if t.flags = s.flags(verb == admin.Delete || verb == admin.Cancel); s.all {
		t.flags = append(t.flags, "--all")
	}
	t.keep.Set("select", "all")
	for _, one := range q.filterPairs() {
		t.keep.Add(one.Name, one.Value)
	}
	return t, nil
}

func words(states []pawl.State) (all []string) {
	for _, state := range states {
		all = append(all, string(state))
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// outcomes counts what became of the jobs of a change.
type outcomes struct {
	done, asked int
	failed      map[string]int // by reason
}

// apply carries out an action in portions.
func (q *request) apply(a admin.Action, ids []pawl.ID) (outcomes, error) {
	all := outcomes{failed: make(map[string]int)}
	for part := range slices.Chunk(ids, admin.MaxIDs) {
		errs, err := q.d.admin.Do(q.ctx, a, part...)
		if err != nil {
			return all, err
		}
		for _, err := range errs {
			switch {
			case err == nil:
				all.done++
			case errors.Is(err, admin.ErrCancelRequested):
				all.done++
				all.asked++
			default:
				all.failed[reasonOf(err)]++
			}
		}
	}
	return all, nil
}

// reasonOf returns why a job was not changed, without its ID, so that the same reasons count as one.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		return "no longer exist"
	case errors.Is(err, pawl.ErrNotEligible):
		return "are in another state, or no longer match"
	case errors.Is(err, admin.ErrWorkflowJob):
		return "belong to workflow runs; cancel the runs"
	case errors.Is(err, pawl.ErrConflict):
		return "conflict: another job has their unique key, or their deadline has passed"
	case errors.Is(err, pawl.ErrCorrupt):
		return "are damaged"
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return "have an unknown outcome"
	case errors.Is(err, context.DeadlineExceeded):
		return "were not reached in time"
	}
	return err.Error()
}

// lines says what did not happen.
func (o outcomes) lines(not string) (lines []string) {
	if o.asked > 0 {
		lines = append(lines, count(o.asked, "job")+" run, and end when their handlers return.")
	}
	var reasons []string
	for reason := range o.failed {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons[:min(len(reasons), 20)] {
		lines = append(lines, fmt.Sprintf("%s %s: they %s.", count(o.failed[reason], "job"), not, reason))
	}
	return lines
}

// count writes a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
