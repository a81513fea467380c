package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	filter *admin.Filter // what must still be true when they are changed
	more   bool          // the selection has more jobs than one change takes
	keep   url.Values
	flags  []string // flags of jobctl
	exact  bool     // the flags select the same jobs
}

// jobChange changes jobs: those that the request names by id, or all that its filter selects.
func jobChange(path string, action Action, verb admin.Verb) change {
	title := strings.ToUpper(path[:1]) + strings.ReplaceAll(path[1:], "-", " ")
	return change{path: path, action: action,
		plan: func(q *request) (plan, error) { return q.jobPlan(path, title, verb) },
		do: func(q *request) (result, error) {
			t, err := q.targets(verb, maxWork/2)
			if err != nil {
				return result{}, err
			}
			if most, err := strconv.Atoi(q.PostForm.Get("most")); err == nil && most >= 0 && most < len(t.ids) {
				t.ids, t.more = t.ids[:most], true // the user has confirmed only these
			}
			r := result{Title: title + " jobs", Back: link("jobs", "state", string(statesOf[verb][0])), target: t.name()}
			if len(t.ids) == 1 {
				r.Back = link("job", "id", t.ids[0])
			}
			outcomes, err := q.apply(admin.Action{Verb: verb, If: t.filter}, t.ids, maxWork)
			r.OK = err == nil && outcomes.done == len(t.ids)
			r.Lines = append([]string{count(outcomes.done, "job") + " " + past[verb] + "."}, outcomes.lines("were not "+past[verb])...)
			switch left := len(t.ids) - outcomes.total(); {
			case err != nil && outcomes.total() > 0:
				r.Lines = append(r.Lines, fmt.Sprintf("Then it failed, so some of the other %s may have been %s too: %v.", count(left, "job"), past[verb], err))
				return r, nil // what it did is worth more than the page about the error
			case err != nil:
				return r, err
			case left > 0:
				r.Lines = append(r.Lines, fmt.Sprintf("It ran out of time before the other %s. Repeat it for the rest.", count(left, "job")))
			case t.more:
				r.Lines = append(r.Lines, "The filter may select more jobs than this change took. Repeat it for the rest.")
			}
			return r, nil
		},
	}
}

// jobPlan tries the change on the jobs that it finds in a short time, unless the request asks for a count. The change
// searches again, so it also takes jobs that this page had no time for.
func (q *request) jobPlan(path, title string, verb admin.Verb) (plan, error) {
	within := lookTime / 2
	if q.Form.Get("count") == "all" || len(q.Form["id"]) > 0 {
		within = maxWork / 2
	}
	t, err := q.targets(verb, within)
	if err != nil {
		return plan{}, err
	}
	tried, err := q.apply(admin.Action{Verb: verb, If: t.filter, DryRun: true}, t.ids, within)
	if err != nil {
		return plan{}, err
	}
	p := plan{
		Lines: append([]string{effects[verb]}, t.lines(tried)...), Keep: t.keep, Harsh: verb == admin.Delete || verb == admin.Cancel, Back: "jobs",
		Commands: []string{q.command(append([]string{"job", path}, t.flags...)...)},
	}
	p.Lines = append(p.Lines, tried.lines("would not be "+past[verb])...)
	all := tried.total() == len(t.ids)
	switch {
	case t.unfinished():
		p.Title, p.Button = title+" all jobs that match", title+" all that match"
	case !all:
		p.Title = fmt.Sprintf("%s up to %s", title, count(len(t.ids), "job"))
		p.Button = p.Title
	case len(t.ids) == 1:
		p.Title, p.Back = title+" job "+t.ids[0].String(), link("job", "id", t.ids[0])
	default:
		p.Title = fmt.Sprintf("%s %d of %d jobs", title, tried.done, len(t.ids))
	}
	switch {
	case t.unfinished() || !all:
		p.Count = path + "?" + t.keep.Encode() + "&count=all"
	case tried.done > 0:
		p.Button = fmt.Sprintf("%s %s", title, count(tried.done, "job"))
	default:
		p.Lines = append(p.Lines, "There is nothing to do.")
	}
	if p.Button != "" && !t.unfinished() {
		p.Keep.Set("most", strconv.Itoa(len(t.ids)))
	}
	if !t.exact {
		p.Lines = append(p.Lines, "The command below selects by a text that these errors contain, so it may select other jobs too.")
	}
	return p, nil
}

// unfinished reports whether the search had no time to find all jobs of one change.
func (t *targets) unfinished() bool { return t.more && len(t.ids) < maxSelected }

// lines says what was not found, or not tried.
func (t *targets) lines(tried outcomes) (lines []string) {
	switch {
	case t.unfinished():
		lines = append(lines, fmt.Sprintf("At least %d match: the search has used its time. One change takes up to %d.", len(t.ids), maxSelected))
	case t.more:
		lines = append(lines, fmt.Sprintf("There are more: one change takes the first %d.", maxSelected))
	}
	if n := tried.total(); n < len(t.ids) {
		lines = append(lines, fmt.Sprintf("This page tried the change on the first %d.", n))
	}
	return lines
}

// name describes the targets for the log.
func (t *targets) name() string {
	if len(t.ids) == 1 {
		return t.ids[0].String()
	}
	return fmt.Sprintf("%d jobs: %s", len(t.ids), strings.Join(t.flags, " "))
}

// targets returns the jobs that a request names. It stops searching for them when the time is over.
func (q *request) targets(verb admin.Verb, within time.Duration) (*targets, error) {
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
		s.State, s.States = admin.OneOrMore[pawl.State](words(statesOf[verb]))
	}
	for _, state := range append(slices.Clone(s.States), s.State) {
		if state != "" && !slices.Contains(statesOf[verb], state) && !(verb == admin.Delete && state == pawl.Completed) {
			return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("A %s job cannot be %s.", state, past[verb]), "Choose another state in the filter."}
		}
	}
	detail := admin.IDs
	if s.Group != "" {
		detail = admin.Summary
		s.Filter.DiedBefore = earlier(s.Filter.DiedBefore, q.Now()) // a job that becomes dead again may belong to another group
	}
	page, err := q.find(s, detail, "", maxSelected+1, within)
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

func words[T ~string](values []T) (all []string) {
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// outcomes counts the results of a change.
type outcomes struct {
	done, asked int
	failed      map[string]int // by reason
}

// total is how many jobs there was an outcome for.
func (o outcomes) total() int {
	n := o.done
	for _, failed := range o.failed {
		n += failed
	}
	return n
}

// tryPortion is how many jobs one step of a dry run tries: few, so that a page ends soon after its time limit.
const tryPortion = admin.MaxIDs / 4

// apply carries out an action in portions, until the time is over or the request has little time left.
func (q *request) apply(a admin.Action, ids []pawl.ID, within time.Duration) (outcomes, error) {
	all, end, portion := outcomes{failed: make(map[string]int)}, time.Now().Add(within), admin.MaxIDs
	if a.DryRun {
		portion = tryPortion
	}
	if deadline, ok := q.ctx.Deadline(); ok && deadline.Add(-reserve).Before(end) {
		end = deadline.Add(-reserve)
	}
	for part := range slices.Chunk(ids, portion) {
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
		if time.Now().After(end) {
			break
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
	reasons := slices.Sorted(maps.Keys(o.failed))
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
