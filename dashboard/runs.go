package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// runsPage is one page of workflow runs.
type runsPage struct {
	Runs              []workflow.Info
	Flow, Status, ID  string // the filter
	Attribute, Parent string // NAME=VALUE, and a run
	Statuses          []workflow.Status
	NextLink          string
	Searched          bool
}

func runs(q *request) error {
	p := &runsPage{Flow: q.Form.Get("flow"), Status: q.Form.Get("status"), ID: q.Form.Get("id"), Attribute: q.Form.Get("attr"), Parent: strings.TrimSpace(q.Form.Get("parent")), Statuses: admin.WorkflowStatuses()}
	if p.Status != "" && !slices.Contains(p.Statuses, workflow.Status(p.Status)) {
		return invalid("status", "%q is no status of a run", clipped(p.Status))
	}
	ask := admin.WorkflowQuery{Limit: pageSize, After: q.Form.Get("after")}
	ask.Flow, ask.Status, ask.Prefix = p.Flow, workflow.Status(p.Status), p.ID
	if p.Attribute != "" {
		name, value, ok := strings.Cut(p.Attribute, "=")
		if !ok || name == "" || value == "" {
			return invalid("attr", "%q is not NAME=VALUE", clipped(p.Attribute))
		}
		ask.Attributes = map[string]string{name: value}
	}
	if p.Parent != "" {
		parent, err := pawl.ParseID(p.Parent)
		if err != nil {
			return err
		}
		ask.Parent = parent
	}
	for began := time.Now(); ; {
		page, err := q.admin().Workflows().List(q.ctx, ask)
		if err != nil {
			return err
		}
		p.Runs = append(p.Runs, page.Runs...)
		if ask.After = page.Next; ask.After == "" || len(p.Runs) >= pageSize || time.Since(began) > lookTime {
			break
		}
		ask.Limit = pageSize - len(p.Runs)
	}
	if p.Searched = len(p.Runs) < pageSize && ask.After != ""; ask.After != "" {
		p.NextLink = link("runs", "flow", p.Flow, "status", p.Status, "id", p.ID, "attr", p.Attribute, "parent", p.Parent, "after", ask.After)
	}
	words := []string{"wf", "list"}
	for _, one := range []pair{{"--flow", p.Flow}, {"-s", p.Status}, {"--id-prefix", p.ID}, {"--attr", p.Attribute}, {"--parent", p.Parent}} {
		if one.Value != "" {
			words = append(words, one.Name, one.Value)
		}
	}
	return q.show("runs", "runs", "Workflow runs", p, q.command(words...))
}

// entriesPage is how many entries of a journal one page has.
const entriesPage = 200

// runPage is what the page of a run shows.
type runPage struct {
	*admin.WorkflowRun
	Input, Output *value
	Hidden        bool
	Entries       []entry
	From, Total   int
	NextLink      string
	Unread        []received
	Published     []named
	Items         []lastItems
	Open          bool
	Length        time.Duration
}

// entry is a line of the journal with its place in the timeline, in thousandths of the whole time.
type entry struct {
	workflow.Entry
	Left, Width int
	Took        time.Duration
	Result      *value
}

type received struct {
	workflow.Pending
	Value *value
}

type named struct {
	Name  string
	Value *value
}

// lastItems are the last items of a stream.
type lastItems struct {
	workflow.StreamInfo
	Items []streamItem
}

type streamItem struct {
	workflow.Item[[]byte]
	Value *value
}

// itemsShown is how many of the last items of a stream the page of a run has.
const itemsShown = 10

// lastItems reads the last items of a stream.
func (q *request) lastItems(run pawl.ID, s workflow.StreamInfo) (last lastItems, err error) {
	items, err := q.admin().Workflows().Items(q.ctx, run, s.Name, s.Last-min(s.Last, itemsShown)+1)
	last.StreamInfo = s
	for i := range items {
		last.Items = append(last.Items, streamItem{items[i], q.namedValueOf(s.Name, items[i].Value)})
	}
	return last, err
}

func run(q *request) error {
	id, err := q.runID()
	if err != nil {
		return err
	}
	depth := admin.RunJournal
	if q.Can(ViewPayload) {
		depth = admin.RunValues
	}
	w, err := q.admin().Workflows().Show(q.ctx, id, depth)
	if err != nil {
		return err
	}
	p := &runPage{WorkflowRun: w, Input: q.runValueOf(w.Input), Output: q.runValueOf(w.Output), Hidden: depth != admin.RunValues, Open: !w.Status.Ended(), Total: len(w.Journal)}
	end := w.Ended
	if end.IsZero() {
		end = q.Now()
	}
	p.Length = end.Sub(w.Created)
	p.From, _ = strconv.Atoi(q.Form.Get("from"))
	p.From = min(max(p.From, 0), len(w.Journal))
	last := min(p.From+entriesPage, len(w.Journal))
	for _, e := range w.Journal[p.From:last] {
		p.Entries = append(p.Entries, q.entry(e, w.Created, end))
	}
	if last < len(w.Journal) {
		p.NextLink = link("run", "id", id, "from", last)
	}
	for _, s := range w.Signals[:min(len(w.Signals), pageSize)] {
		p.Unread = append(p.Unread, received{s, q.namedValueOf(s.Name, s.Payload)})
	}
	for _, name := range slices.Sorted(maps.Keys(w.Published)) {
		p.Published = append(p.Published, named{name, q.namedValueOf(name, w.Published[name])})
	}
	for _, s := range w.Streams {
		last := lastItems{StreamInfo: s}
		if !p.Hidden {
			if last, err = q.lastItems(id, s); err != nil {
				return err
			}
		}
		p.Items = append(p.Items, last)
	}
	return q.show("run", "runs", "Run "+cmp.Or(w.Flow+" "+w.Info.ID, id.String()), p, q.command("wf", "show", id.String()))
}

// entry returns a line of the journal.
func (q *request) entry(e workflow.Entry, begin, end time.Time) entry {
	one := entry{Entry: e, Result: q.namedValueOf(e.Name, e.Result)}
	if e.Kind == workflow.KindSelect && one.Result != nil {
		signal, took := strings.CutPrefix(e.Selected(), "signal ")
		if e.Selected() == "" || took && q.d.hides(signal) { // without a case, its signal may be a hidden one
			one.Result = &value{Text: hidden}
		}
	}
	if e.Started.IsZero() {
		return one
	}
	finished := e.Finished
	if finished.IsZero() {
		finished = end
	}
	one.Took = finished.Sub(e.Started)
	whole := max(end.Sub(begin), time.Millisecond)
	place := func(t time.Time) int { return int(min(max(t.Sub(begin)*1000/whole, 0), 1000)) }
	one.Left = min(place(e.Started), 992)
	one.Width = max(place(finished)-one.Left, 8)
	return one
}

// runID returns the run that a request names.
func (q *request) runID() (pawl.ID, error) {
	return pawl.ParseID(strings.TrimSpace(q.Form.Get("id")))
}

// runEffects say what a verb does to a run.
var runEffects = map[admin.Verb]string{
	admin.Cancel:    "The current step gets an error, the flow undoes what was done, and then the run is cancelled.",
	admin.Terminate: "The run ends at once, and nothing that it did is undone.",
	admin.Pause:     "The run stops after its current step until it is resumed.",
	admin.Resume:    "The run continues, if it is paused, blocked, or dead.",
}

// runChange changes a run.
func runChange(path string, action Action, verb admin.Verb) change {
	title := strings.ToUpper(string(verb[:1])) + string(verb[1:])
	reasoned := verb == admin.Cancel || verb == admin.Terminate
	words := func(q *request, id pawl.ID) string {
		w := []string{"wf", string(verb), id.String()}
		if reason := q.PostForm.Get("reason"); reasoned && reason != "" {
			w = append(w, "--reason", reason)
		}
		return q.command(w...)
	}
	do := func(q *request, dry bool) (pawl.ID, error) {
		id, err := q.runID()
		if err != nil {
			return id, err
		}
		a := admin.RunAction{Verb: verb, DryRun: dry}
		if reasoned {
			a.Reason = q.PostForm.Get("reason")
		}
		errs, err := q.admin().Workflows().Do(q.ctx, a, id)
		if err == nil {
			err = errs[0]
		}
		return id, err
	}
	return change{path: path, action: action,
		plan: func(q *request) (plan, error) {
			id, err := do(q, true)
			p := plan{Title: title + " run " + id.String(), Lines: []string{runEffects[verb]}, Keep: url.Values{"id": {id.String()}},
				Button: title + " the run", Harsh: reasoned, Back: link("run", "id", id), Commands: []string{words(q, id)}}
			if reasoned {
				p.Fields = []field{{Name: "reason", Label: "Reason", Help: "for people who look at the run later"}}
			}
			return p, err
		},
		do: func(q *request) (result, error) {
			id, err := do(q, false)
			said := "The run was asked to " + string(verb) + "."
			if s, e := q.Stats(); e == nil && s.Process == nil {
				said += " It happens when an app runs the queue."
			}
			return result{Title: title + " run", Lines: []string{said}, OK: true, Back: link("run", "id", id), target: id.String(), Commands: []string{words(q, id)}}, err
		},
	}
}

// signalChange sends a signal to a run.
func signalChange() change {
	return change{path: "signal", action: Signal,
		plan: func(q *request) (plan, error) {
			id, err := q.runID()
			if err != nil {
				return plan{}, err
			}
			w, err := q.admin().Workflows().Show(q.ctx, id, admin.RunInfo)
			if err != nil {
				return plan{}, err
			}
			names := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(w.Waits), w.Declared...))))
			p := plan{Title: "Send a signal to run " + id.String(), Keep: url.Values{"id": {id.String()}}, Back: link("run", "id", id), Button: "Send the signal",
				Fields: []field{
					{Name: "name", Label: "Signal", Value: cmp.Or(q.Form.Get("name"), first(w.Waits)), Known: names, Required: true},
					{Name: "value", Label: "Value", Value: cmp.Or(q.Form.Get("value"), "null"), Help: "as JSON", Long: true},
					{Name: "dedup", Label: "Dedup key", Help: "of the signals with this key, the run gets only the first"},
				},
				Commands: []string{q.command("wf", "signal", id.String(), cmp.Or(first(w.Waits), "NAME"), "null")}}
			switch {
			case w.Status.Ended():
				p.Lines, p.Button, p.Fields = []string{"The run has ended and accepts no signals."}, "", nil
			case len(w.Waits) > 0:
				p.Lines = []string{"The run waits for " + strings.Join(w.Waits, ", ") + "."}
			default:
				p.Lines = []string{"The run does not wait for a signal now. It keeps the signal until it does."}
			}
			return p, nil
		},
		do: func(q *request) (result, error) {
			id, err := q.runID()
			if err != nil {
				return result{}, err
			}
			name, text := q.PostForm.Get("name"), cmp.Or(strings.TrimSpace(q.PostForm.Get("value")), "null")
			r := result{Title: "Signal " + name, Lines: []string{"The signal was sent."}, OK: true, Back: link("run", "id", id), target: fmt.Sprintf("%s signal %s", id, name)}
			payload, err := admin.EncodeJSON([]byte(text))
			if err != nil {
				return r, err
			}
			dedup := q.PostForm.Get("dedup")
			words := []string{"wf", "signal", id.String(), name, text}
			if dedup != "" {
				words = append(words, "--dedup", dedup)
			}
			r.Commands = []string{q.command(words...)}
			return r, q.admin().Workflows().Signal(q.ctx, id, name, payload, dedup)
		},
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
