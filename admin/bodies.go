package admin

import (
	"fmt"
	"net/url"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// What travels in bodies and answers, and between that and the types of [Admin].

// failure is the answer to a request that failed.
type failure struct {
	Error *problem `json:"error"`
}

type statsBody struct {
	Path    string       `json:"path"`
	Format  int          `json:"format"`
	Size    int64        `json:"size_bytes"`
	Free    *int64       `json:"free_bytes"`
	Queues  []queueBody  `json:"queues"`
	Process *processBody `json:"process"`
	Runs    []doneBody   `json:"done"`
}

type queueBody struct {
	Name      Text  `json:"name"`
	Paused    bool  `json:"paused"`
	Served    bool  `json:"served"`
	Ready     int   `json:"ready"`
	Delayed   int   `json:"delayed"`
	Leased    int   `json:"leased"`
	Dead      int   `json:"dead"`
	Completed int   `json:"completed"`
	Oldest    Stamp `json:"oldest_ready_at"`
}

type processBody struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Started Stamp  `json:"started_at"`
}

type doneBody struct {
	Queue     Text  `json:"queue"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
}

func statsBodyOf(s Stats) statsBody {
	b := statsBody{Path: s.Path, Format: s.Format, Size: s.Size, Queues: []queueBody{}}
	if s.Free >= 0 {
		b.Free = &s.Free
	}
	for _, q := range s.Queues {
		b.Queues = append(b.Queues, queueBody{
			Text(q.Name), q.Paused, q.Served, q.Ready, q.Delayed, q.Leased, q.Dead, q.Completed, Stamp{q.Oldest},
		})
	}
	if p := s.Process; p != nil {
		b.Process = &processBody{p.PID, p.Name, p.Version, Stamp{p.Started}}
	}
	for queue, done := range s.Done {
		b.Runs = append(b.Runs, doneBody{Text(queue), done.Succeeded, done.Failed})
	}
	return b
}

func (b *statsBody) stats() Stats {
	s := Stats{Stats: bolt.Stats{Path: b.Path, Format: b.Format, Size: b.Size, Free: -1}}
	if b.Free != nil {
		s.Free = *b.Free
	}
	for _, q := range b.Queues {
		s.Queues = append(s.Queues, pawl.QueueStats{
			Name: string(q.Name), Paused: q.Paused, Served: q.Served, Oldest: q.Oldest.Time,
			Counts: pawl.Counts{Ready: q.Ready, Delayed: q.Delayed, Leased: q.Leased, Dead: q.Dead, Completed: q.Completed},
		})
	}
	if p := b.Process; p != nil {
		s.Process = &Process{p.PID, p.Name, p.Version, p.Started.Time}
	}
	if b.Runs != nil {
		s.Done = make(map[string]Done, len(b.Runs))
		for _, r := range b.Runs {
			s.Done[string(r.Queue)] = Done{r.Succeeded, r.Failed}
		}
	}
	return s
}

// pageBody is a page of jobs.
type pageBody struct {
	Jobs []any  `json:"jobs"` // of Job, briefBody or damagedBody
	Next string `json:"next"`
}

// briefBody is a job of which only this was asked for. Its names are those of [Job].
type briefBody struct {
	ID    string `json:"id"`
	Kind  Text   `json:"kind"`
	Queue Text   `json:"queue"`
	State string `json:"state"`
}

// damagedBody is a job that cannot be read.
type damagedBody struct {
	ID    string   `json:"id"`
	Error *problem `json:"error"`
}

func pageBodyOf(p Page, detail Detail, form PayloadForm) pageBody {
	b := pageBody{Jobs: make([]any, 0, len(p.Jobs)), Next: p.Next}
	for _, l := range p.Jobs {
		switch {
		case l.Err != nil:
			fault, _ := problemOf(l.Err)
			b.Jobs = append(b.Jobs, damagedBody{l.Job.ID.String(), fault})
		case detail == IDs:
			b.Jobs = append(b.Jobs, briefBody{l.Job.ID.String(), Text(l.Job.Kind), Text(l.Job.Queue), string(l.Job.State)})
		default:
			b.Jobs = append(b.Jobs, JobOf(l.Job, form))
		}
	}
	return b
}

// pageAnswer is a page as the client reads it.
type pageAnswer struct {
	Jobs []struct {
		Job
		Error *problem `json:"error"`
	} `json:"jobs"`
	Next string `json:"next"`
}

func (b *pageAnswer) page() (Page, error) {
	p := Page{Jobs: make([]bolt.Listed, 0, len(b.Jobs)), Next: b.Next}
	for i := range b.Jobs {
		one := &b.Jobs[i]
		if one.Error != nil {
			id, err := pawl.ParseID(one.ID)
			if err != nil {
				return Page{}, err
			}
			p.Jobs = append(p.Jobs, bolt.Listed{Job: &pawl.Envelope{ID: id}, Err: one.Error.err()})
			continue
		}
		e, err := one.Envelope()
		if err != nil {
			return Page{}, err
		}
		p.Jobs = append(p.Jobs, bolt.Listed{Job: e})
	}
	return p, nil
}

type doBody struct {
	Verb         Verb      `json:"verb"`
	KeepAttempts bool      `json:"keep_attempts"`
	Force        bool      `json:"force"`
	Queue        Text      `json:"queue"`
	IDs          []pawl.ID `json:"ids"`
	If           string    `json:"if,omitempty"` // a filter, as the parameters of a list
	DryRun       bool      `json:"dry_run,omitempty"`
}

func doBodyOf(a Action, ids []pawl.ID) doBody {
	b := doBody{Verb: a.Verb, KeepAttempts: a.KeepAttempts, Queue: Text(a.Queue), IDs: ids, DryRun: a.DryRun, Force: a.Force}
	if a.If != nil {
		b.If = valuesOf(Query{Filter: *a.If}).Encode()
	}
	return b
}

// action is what the body asks for.
func (b *doBody) action() (Action, error) {
	a := Action{Verb: b.Verb, KeepAttempts: b.KeepAttempts, Queue: string(b.Queue), DryRun: b.DryRun, Force: b.Force}
	if b.If == "" {
		return a, nil
	}
	if err := checkParams(b.If, true); err != nil {
		return a, err
	}
	values, _ := url.ParseQuery(b.If)
	q, _, err := queryOf(values)
	if err == nil && (q.After != "" || q.Limit != 0 || q.Detail != Summary) {
		err = invalid("if", "it has the page of a list; a filter has none")
	}
	a.If = &q.Filter
	return a, err
}

// idsBody is the answer of FindIDs.
type idsBody struct {
	IDs []pawl.ID `json:"ids"`
}

// doneAnswer has an error, or null, for each ID, in their order.
type doneAnswer struct {
	Errors []*problem `json:"errors"`
}

type queueName struct {
	Queue Text `json:"queue"`
}

type reapBody struct {
	Reaped int `json:"reaped"`
}

type effectBody struct {
	Kind  Text  `json:"kind"`
	Key   Text  `json:"key"`
	Until Stamp `json:"until"`
}

func effectBodiesOf(effects []bolt.Effect) []effectBody {
	bodies := make([]effectBody, len(effects))
	for i, e := range effects {
		bodies[i] = effectBody{Text(e.Kind), Text(e.Key), Stamp{e.Until}}
	}
	return bodies
}

func effectsOf(bodies []effectBody) []bolt.Effect {
	if len(bodies) == 0 {
		return nil
	}
	effects := make([]bolt.Effect, len(bodies))
	for i, b := range bodies {
		effects[i] = bolt.Effect{Kind: string(b.Kind), Key: string(b.Key), Until: b.Until.Time}
	}
	return effects
}

type effectsBody struct {
	Effects []effectBody `json:"effects"`
	Next    string       `json:"next"`
}

// jobsBody is what enqueue and restore are given.
type jobsBody struct {
	Jobs    list[Job]        `json:"jobs"`
	Effects list[effectBody] `json:"effects,omitempty"` // of restore alone
}

// storedBody is what the queue fills in when it stores a job. Its names are those of [Job].
type storedBody struct {
	ID        string `json:"id"`
	Queue     Text   `json:"queue"`
	Origin    Text   `json:"origin"`
	CreatedAt Stamp  `json:"created_at"`
	NotBefore Stamp  `json:"not_before"`
	Sequence  uint64 `json:"sequence"`
	Existing  bool   `json:"existing,omitempty"`
}

// storedAnswer has one for each job, in their order.
type storedAnswer struct {
	Jobs []storedBody `json:"jobs"`
}

func storedAnswerOf(jobs []*pawl.Envelope) storedAnswer {
	a := storedAnswer{make([]storedBody, len(jobs))}
	for i, e := range jobs {
		a.Jobs[i] = storedBody{e.ID.String(), Text(e.Queue), Text(e.Origin), Stamp{e.Created}, Stamp{e.NotBefore}, e.Seq, e.Existing}
	}
	return a
}

// complete fills in envelopes as the app did.
func (a *storedAnswer) complete(jobs []*pawl.Envelope) error {
	if len(a.Jobs) != len(jobs) {
		return fmt.Errorf("%w: it answered for %d of %d jobs", errGarbled, len(a.Jobs), len(jobs))
	}
	ids := make([]pawl.ID, len(jobs))
	for i, b := range a.Jobs {
		var err error
		if ids[i], err = pawl.ParseID(b.ID); err != nil {
			return fmt.Errorf("%w: %w", errGarbled, err)
		}
	}
	for i, b := range a.Jobs {
		e := jobs[i]
		e.ID, e.Queue, e.Origin, e.Seq, e.Existing = ids[i], string(b.Queue), string(b.Origin), b.Sequence, b.Existing
		e.Created, e.NotBefore = b.CreatedAt.Time, b.NotBefore.Time
	}
	return nil
}
