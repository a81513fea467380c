package dashboard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// jobPage is what the page of a job shows.
type jobPage struct {
	*pawl.Envelope
	Payload, Result *value
	Headers         []pair
	Timeline        []point
	Why             []string // why it waits, or why it is dead
	Facts           []pair
	Progress        *pawl.Progress // progress of the last attempt that reported some; nil if none did
	Logs            []pawl.RunLog  // logs of the last attempts, oldest first
	Hidden          bool           // the user may not see the payload
	Edits           []pastValue    // the arguments before operators replaced them
	Editable        bool
	Dropped         int // failures that are not in the history
}

// point is something that happened, or will happen, to a job at a time.
type point struct {
	At     time.Time
	What   string
	Detail string
	Kind   string // ok, bad, wait, or run, for the color beside the words
	Future bool
}

func job(q *request) error {
	text := strings.TrimSpace(q.Form.Get("id"))
	id, err := pawl.ParseID(text)
	if err != nil && len(text) >= 4 { // the beginning or the end of an ID
		found, err := q.findIDs(text)
		if err != nil {
			return err
		}
		switch {
		case len(found.IDs) == 0 && found.NextLink == "":
			return &refusal{404, fmt.Sprintf("No job has an ID that begins or ends with %q.", clipped(text)), "It is done, or it never existed."}
		case len(found.IDs) != 1 || found.NextLink != "":
			return q.show("found", "jobs", "Jobs by a part of their ID", found, q.command("job", "show", text))
		}
		id = found.IDs[0]
	} else if err != nil {
		return err
	}
	e, err := q.d.admin.Job(q.ctx, id)
	if err != nil {
		return err
	}
	p := &jobPage{Envelope: e, Payload: q.valueOf(e.Payload), Result: q.valueOf(e.Result), Hidden: !q.Can(ViewPayload)}
	p.Dropped = max(0, e.Failures-len(e.History))
	p.Editable = editable(e)
	if !p.Hidden {
		p.Edits = q.edits(e)
		for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
			if name == admin.HeaderEdits && len(p.Edits) > 0 {
				continue
			}
			text := e.Headers[name]
			if q.d.hides(name) {
				text = hiddenText
			}
			p.Headers = append(p.Headers, pair{name, text})
		}
	}
	p.Timeline, p.Why, p.Facts = timeline(e, q.Now()), q.why(e), facts(e)
	for _, key := range []pair{{"Key", e.Key}, {"Idempotency key", e.IdempotencyKey}, {"Unique key", e.UniqueKey}} {
		if !p.Hidden && key.Value != "" {
			p.Facts = append(p.Facts, key)
		}
	}
	if err := q.notes(p); err != nil {
		return err
	}
	commands := []string{q.command("job", "show", e.ID.String())}
	if len(p.Why) > 0 && e.Death == nil {
		commands = append(commands, q.command("job", "why", e.ID.String()))
	}
	if len(p.Logs) > 0 {
		commands = append(commands, q.command("job", "logs", e.ID.String()))
	}
	return q.show("job", "jobs", "Job "+e.ID.String(), p, commands...)
}

// foundPage is what a search for a part of an ID has found so far.
type foundPage struct {
	Part     string
	IDs      []pawl.ID
	NextLink string // the page that continues
}

// findIDs searches for a while. A search that continues keeps the IDs that it has found.
func (q *request) findIDs(part string) (*foundPage, error) {
	p, after, began := &foundPage{Part: part}, q.Form.Get("after"), time.Now()
	for _, text := range q.Form["found"] {
		id, err := pawl.ParseID(text)
		if err != nil {
			return nil, err
		}
		p.IDs = append(p.IDs, id)
	}
	for {
		ids, next, err := q.d.admin.FindIDs(q.ctx, part, after)
		if err != nil {
			return nil, err
		}
		p.IDs, after = append(p.IDs, ids...), next
		if after == "" || len(p.IDs) >= admin.MaxFound || time.Since(began) > lookTime {
			break
		}
	}
	if after != "" && len(p.IDs) < admin.MaxFound {
		keep := []any{"id", part, "after", after}
		for _, id := range p.IDs {
			keep = append(keep, "found", id.String())
		}
		p.NextLink = link("job", keep...)
	}
	return p, nil
}

// notes reads the progress of the job, and the logs of its last attempts. A handler may log arguments, so
// both need the action ViewPayload.
func (q *request) notes(p *jobPage) error {
	if p.Hidden {
		return nil
	}
	progress, err := q.d.admin.Progress(q.ctx, p.ID)
	if err == nil && len(progress) > 0 {
		p.Progress = &progress[0].Progress
	}
	if err == nil {
		p.Logs, err = q.d.admin.Logs(q.ctx, p.ID)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// timeline lists what the record of a job says, oldest first.
func timeline(e *pawl.Envelope, now time.Time) []point {
	all := []point{{At: e.Created, What: "Created", Detail: "on queue " + e.Origin, Kind: "ok"}}
	if dropped := e.Failures - len(e.History); dropped > 0 {
		all = append(all, point{What: count(dropped, "earlier failure"), Detail: "not kept in the history", Kind: "bad"})
	}
	for _, f := range e.History {
		all = append(all, point{At: f.At, What: fmt.Sprintf("Attempt %d failed", f.Attempt), Detail: firstLine(f.Error), Kind: "bad"})
	}
	switch e.State {
	case pawl.Ready:
		all = append(all, point{At: e.NotBefore, What: "Ready", Detail: fmt.Sprintf("for attempt %d", e.Attempt()), Kind: "wait"})
	case pawl.Delayed:
		all = append(all, point{At: e.NotBefore, What: "Becomes ready", Detail: fmt.Sprintf("for attempt %d", e.Attempt()), Kind: "wait", Future: e.NotBefore.After(now)})
	case pawl.Leased:
		all = append(all, point{At: e.LeasedSince, What: fmt.Sprintf("Attempt %d runs", e.Attempt()), Detail: "for " + span(now.Sub(e.LeasedSince)), Kind: "run"})
	case pawl.Completed:
		all = append(all, point{At: e.Completed, What: "Succeeded", Detail: fmt.Sprintf("attempt %d", e.Attempt()), Kind: "ok"})
	}
	if e.Death != nil {
		all = append(all, point{At: e.Death.At, What: "Dead", Detail: string(e.Death.Reason), Kind: "bad"})
	}
	if !e.Deadline.IsZero() && e.Deadline.After(now) && (e.State == pawl.Ready || e.State == pawl.Delayed) {
		all = append(all, point{At: e.Deadline, What: "Deadline", Detail: "not fetched from then on", Kind: "wait", Future: true})
	}
	return all
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// deaths says what the reasons of dead jobs mean.
var deaths = map[pawl.Reason]string{
	pawl.ReasonExhausted: "Its last retry failed.",
	pawl.ReasonPermanent: "The handler or the policy said that no retry helps.",
	pawl.ReasonPoison:    "It kept taking its process down.",
	pawl.ReasonDeadline:  "Its deadline passed before it succeeded.",
	pawl.ReasonCancelled: "An operator or the app ended it.",
	pawl.ReasonSignature: "Its signature is missing or wrong.",
	pawl.ReasonPayload:   "Its arguments do not fit the type that the worker has for its kind.",
	pawl.ReasonCorrupt:   "Its stored record is damaged.",
}

// why says why a job does not run.
func (q *request) why(e *pawl.Envelope) (lines []string) {
	if e.Death != nil {
		return append(lines, deaths[e.Death.Reason])
	}
	if e.State != pawl.Ready && e.State != pawl.Delayed {
		if e.State == pawl.Leased && e.Cancelled {
			lines = append(lines, "It was asked to end, and ends when its handler returns.")
		}
		return lines
	}
	queue, stats := q.QueueStats(e.Queue), q.stats
	if e.State == pawl.Delayed {
		lines = append(lines, q.delay(e))
	}
	if queue.Paused {
		lines = append(lines, "Its queue is paused.")
	}
	if stats != nil && stats.Process == nil {
		lines = append(lines, "No app has this queue open here.")
	}
	lines = append(lines, q.obstacles(e)...)
	if e.State == pawl.Ready && len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("It is ready. Its queue has %s ready and %s running.", count(queue.Ready, "job"), count(queue.Leased, "job")))
	}
	return lines
}

// delay says what a delayed job waits for.
func (q *request) delay(e *pawl.Envelope) string {
	when := ago(moment{q.Now(), e.NotBefore})
	if !e.BackoffSince.IsZero() {
		return fmt.Sprintf("It waits for its retry, after attempt %d failed: %s.", e.Attempts, when)
	}
	waits, err := admin.WhyDelayed(q.ctx, q.admin(), e.ID, e.Kind, func(t time.Time) string {
		return fmt.Sprintf("%s UTC (%s)", stamp(t), ago(moment{q.Now(), t}))
	})
	if len(waits) == 0 || err != nil {
		return fmt.Sprintf("It waits for its time: %s.", when)
	}
	return fmt.Sprintf("Its run waits for %s.", strings.Join(waits, "; "))
}

// obstacles says what else keeps a job from running: limits, keys, other jobs, and absent workers.
func (q *request) obstacles(e *pawl.Envelope) (lines []string) {
	all, err := q.d.admin.Why(q.ctx, e.ID)
	if err != nil {
		return nil // an engine without it, or a job that has just ended
	}
	for _, o := range all {
		switch o.What {
		case pawl.IsRunning, pawl.IsDead, pawl.IsCompleted, pawl.ByDelay, pawl.ByStop, pawl.ByPause:
			continue // the page says so in other words
		}
		if !q.Can(ViewPayload) && o.Key != "" {
			o.Key = hiddenText
		}
		text := o.String()
		lines = append(lines, strings.ToUpper(text[:1])+text[1:]+".")
	}
	return lines
}

// facts lists the fields of a job that apply to it. The values of keys are not among them, since they may be
// made of arguments.
func facts(e *pawl.Envelope) (all []pair) {
	add := func(name, format string, args ...any) { all = append(all, pair{name, fmt.Sprintf(format, args...)}) }
	add("Attempts", "%d of %d", e.Attempts, e.MaxRetries+1)
	if e.Crashes > 0 {
		add("Crashes in a row", "%d", e.Crashes)
	}
	add("Priority", "%d", e.Priority)
	if e.Cost > 1 {
		add("Cost", "%d", e.Cost)
	}
	if e.Weight > 1 {
		add("Weight", "%d", e.Weight)
	}
	if e.Timeout > 0 {
		add("Timeout", "%s", span(e.Timeout))
	}
	if e.Policy != nil {
		add("Policy", "%s", e.Policy)
	}
	if e.Retain > 0 {
		add("Kept after success", "%s", span(e.Retain))
	}
	if e.KeyID != "" {
		add("Signed with key", "%s", e.KeyID)
	}
	add("Sequence", "%d", e.Seq)
	return all
}
