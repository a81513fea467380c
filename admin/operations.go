package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/workflow"
)

// direct carries out operations in this process.
type direct struct {
	q     Store
	live  bool // processes that have the queue open may hold its leases
	flows bool // its app runs in this process, with the code of its flows
}

var opStats = define(operation[nothing, Stats]{
	path: "stats",
	do:   func(ctx context.Context, a Admin, _ *nothing) (Stats, error) { return a.Stats(ctx) },
})

func (c *client) Stats(ctx context.Context) (Stats, error) { return ask(ctx, c, opStats, nothing{}) }

func (d direct) Stats(ctx context.Context) (Stats, error) {
	s, err := d.q.Stats(ctx)
	return Stats{Stats: s}, err
}

var opList = define(operation[Query, Page]{
	path: "jobs/list", work: lists, large: func(q *Query) bool { return q.Limit > DefaultLimit || q.Detail >= Whole },
	do: func(ctx context.Context, a Admin, q *Query) (Page, error) { return a.List(ctx, *q) },
	check: func(q *Query, p *Page) error {
		return checkList(len(p.Jobs), q.Limit, q.After, p.Next)
	},
})

func (c *client) List(ctx context.Context, q Query) (Page, error) { return ask(ctx, c, opList, q) }

func (d direct) List(ctx context.Context, q Query) (Page, error) {
	return listPage(ctx, d.q, q)
}

var opSummary = define(operation[SummaryQuery, SummaryPage]{
	path: "dead/summary", work: lists,
	do: func(ctx context.Context, a Admin, q *SummaryQuery) (SummaryPage, error) { return a.Summary(ctx, *q) },
	check: func(q *SummaryQuery, p *SummaryPage) error {
		if slices.ContainsFunc(p.Groups, func(g Group) bool { return g.Count < 1 }) || p.Damaged < 0 {
			return errors.New("it has a group without jobs")
		}
		return checkPage(len(p.Groups), maxPageGroups+MaxLimit, q.After, p.Next)
	},
})

func (c *client) Summary(ctx context.Context, q SummaryQuery) (SummaryPage, error) {
	return ask(ctx, c, opSummary, q)
}

func (d direct) Summary(ctx context.Context, q SummaryQuery) (SummaryPage, error) {
	return summaryPage(ctx, d.q, q)
}

type jobRequest struct{ ID pawl.ID }

var opJob = define(operation[jobRequest, *pawl.Envelope]{
	path: "jobs/show", work: lists,
	do: func(ctx context.Context, a Admin, r *jobRequest) (*pawl.Envelope, error) { return a.Job(ctx, r.ID) },
	check: func(r *jobRequest, e **pawl.Envelope) error {
		if *e == nil || (*e).ID != r.ID {
			return errors.New("it has another job, or none")
		}
		return nil
	},
})

func (c *client) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return ask(ctx, c, opJob, jobRequest{id})
}

func (d direct) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return d.q.Job(ctx, id)
}

type findRequest struct{ Part, After string }

type foundIDs struct {
	IDs  []pawl.ID
	Next string
}

var opFindIDs = define(operation[findRequest, foundIDs]{
	path: "jobs/find", work: lists,
	do: func(ctx context.Context, a Admin, r *findRequest) (foundIDs, error) {
		ids, next, err := a.FindIDs(ctx, r.Part, r.After)
		return foundIDs{ids, next}, err
	},
	check: func(r *findRequest, found *foundIDs) error {
		return checkPage(len(found.IDs), MaxFound, r.After, found.Next)
	},
})

func (c *client) FindIDs(ctx context.Context, part, after string) ([]pawl.ID, string, error) {
	found, err := ask(ctx, c, opFindIDs, findRequest{part, after})
	return found.IDs, found.Next, err
}

func (d direct) FindIDs(ctx context.Context, part, after string) ([]pawl.ID, string, error) {
	return d.q.FindIDs(ctx, part, after, MaxFound)
}

type doRequest struct {
	Action
	IDs []pawl.ID
}

// outcomes contains an error, or nil, for each ID of a request, in their order.
type outcomes struct{ Errors []error }

// checkCount rejects an answer that does not have one outcome for each of those that were named.
func checkCount(outcomes, named int) error {
	if outcomes != named {
		return fmt.Errorf("it has %d outcomes for %d", outcomes, named)
	}
	return nil
}

var opDo, opDryRun = defineTried("jobs/do", "jobs/dry-run", "jobs", func(r *doRequest) bool { return r.DryRun }, operation[doRequest, outcomes]{
	do: func(ctx context.Context, a Admin, r *doRequest) (outcomes, error) {
		errs, err := a.Do(ctx, r.Action, r.IDs...)
		return outcomes{errs}, err
	},
	check: func(r *doRequest, o *outcomes) error { return checkCount(len(o.Errors), len(r.IDs)) },
})

func (c *client) Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error) {
	o, most := opDo, MaxIDs
	if a.DryRun {
		o, most = opDryRun, MaxDryIDs
	}
	if len(ids) > most {
		return nil, invalid("ids", "%d of them, one call takes %d", len(ids), most)
	}
	done, err := ask(ctx, c, o, doRequest{a, ids})
	return done.Errors, err
}

func (d direct) Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error) {
	if a.DryRun {
		return d.dryRun(ctx, a, ids)
	}
	return d.do(ctx, a, ids)
}

type enqueueRequest struct{ Jobs []*pawl.Envelope }

var opEnqueue = define(operation[enqueueRequest, enqueuedJobs]{
	path: "jobs/enqueue", changes: true,
	do: func(ctx context.Context, a Admin, r *enqueueRequest) (enqueuedJobs, error) {
		done, err := a.Enqueue(ctx, r.Jobs...)
		return enqueuedJobs{done}, err
	},
	check: (*enqueueRequest).check,
})

func (d direct) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return d.q.Enqueue(ctx, jobs...)
}

type restoreRequest struct {
	Jobs    []*pawl.Envelope
	Effects []driver.Effect
}

var opRestore = defineChange("restore", func(ctx context.Context, a Admin, r *restoreRequest) error {
	return a.Restore(ctx, r.Jobs, r.Effects)
})

func (c *client) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if len(jobs)+len(effects) == 0 {
		return nil
	}
	for i, e := range jobs {
		if e == nil {
			return fmt.Errorf("job %d: %w", i, driver.CheckEnvelope(e))
		}
	}
	return send(ctx, c, opRestore, restoreRequest{jobs, effects})
}

func (d direct) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	return d.q.Restore(ctx, jobs, effects)
}

type queueRequest struct{ Queue string }

var (
	opPause  = defineQueue("queues/pause", Admin.Pause)
	opResume = defineQueue("queues/resume", Admin.Resume)
)

func defineQueue(path string, set func(Admin, context.Context, string) error) *operation[queueRequest, nothing] {
	return defineChange(path, func(ctx context.Context, a Admin, r *queueRequest) error {
		return set(a, ctx, r.Queue)
	})
}

func (c *client) Pause(ctx context.Context, queue string) error {
	return send(ctx, c, opPause, queueRequest{queue})
}

func (d direct) Pause(ctx context.Context, queue string) error {
	return d.q.Pause(ctx, queue)
}

func (c *client) Resume(ctx context.Context, queue string) error {
	return send(ctx, c, opResume, queueRequest{queue})
}

func (d direct) Resume(ctx context.Context, queue string) error {
	return d.q.Resume(ctx, queue)
}

type reaped struct{ Reaped int }

var opReap = define(operation[nothing, reaped]{
	path: "reap", changes: true,
	do: func(ctx context.Context, a Admin, _ *nothing) (reaped, error) {
		n, err := a.Reap(ctx)
		return reaped{n}, err
	},
	check: func(_ *nothing, r *reaped) error { return checkNumber(r.Reaped) },
})

// checkNumber rejects a number of things that is negative.
func checkNumber(n int) error {
	if n < 0 {
		return fmt.Errorf("it counts %d", n)
	}
	return nil
}

func (c *client) Reap(ctx context.Context) (int, error) {
	r, err := ask(ctx, c, opReap, nothing{})
	return r.Reaped, err
}

func (d direct) Reap(ctx context.Context) (int, error) {
	return d.q.Reap(ctx)
}

type effectsRequest struct{ After string }

type effectsPage struct {
	Effects []driver.Effect
	Next    string
	Error   error // of a damaged job
}

// maxEffects is the most effects that one call of Effects returns.
const maxEffects = 1000

var opEffects = define(operation[effectsRequest, effectsPage]{
	path: "effects", work: lists,
	do: func(ctx context.Context, a Admin, r *effectsRequest) (effectsPage, error) {
		effects, next, err := a.Effects(ctx, r.After)
		if errors.Is(err, pawl.ErrCorrupt) {
			return effectsPage{effects, next, err}, nil
		}
		return effectsPage{effects, next, nil}, err
	},
	check: func(r *effectsRequest, p *effectsPage) error {
		return checkPage(len(p.Effects), maxEffects, r.After, p.Next)
	},
})

func (c *client) Effects(ctx context.Context, after string) ([]driver.Effect, string, error) {
	page, err := ask(ctx, c, opEffects, effectsRequest{after})
	if err == nil {
		err = page.Error
	}
	return page.Effects, page.Next, err
}

// Effects implements Admin. A damaged effect is an error with the position after it.
func (d direct) Effects(ctx context.Context, after string) (effects []driver.Effect, next string, err error) {
	return d.q.Effects(ctx, after, maxEffects)
}

// The streams; clientstreams.go has their clients.
var (
	pathCheck  = defineStream("check", func(h *handler) *gate { return h.checks }, (*handler).check)
	pathBackup = defineStream("backup", func(h *handler) *gate { return h.backups }, (*handler).backup)
	pathEvents = defineStream("events", func(h *handler) *gate { return h.streams }, (*handler).events)
	pathEnd    = defineStream("end", func(h *handler) *gate { return h.candidates }, (*handler).end)
)

// Check also checks the rows of runs and of schedules, which the queue only stores.
func (d direct) Check(ctx context.Context) error {
	q, err := optional[Checker](d.q, "check")
	if err != nil {
		return err
	}
	found := q.Check(ctx)
	rows, stores := d.q.(workflow.Source)
	if !stores || found != nil && !errors.Is(found, pawl.ErrCorrupt) {
		return found
	}
	return errors.Join(found, workflow.Read(rows).Check(ctx), schedule.Read(rows).Check(ctx))
}

func (d direct) Backup(ctx context.Context, w io.Writer) error {
	_, err := using(d, "backup", func(q Backuper) (int64, error) { return q.WriteBackup(ctx, w) })
	return err
}
