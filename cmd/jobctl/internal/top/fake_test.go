package top

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// fake is a queue for tests. It keeps its jobs in a list, and records every call in calls. Methods that the
// screen does not call are missing, and panic.
type fake struct {
	admin.Admin

	path     string
	process  *admin.Process // nil for a stopped app
	done     map[string]admin.Done
	jobs     []*pawl.Envelope
	runs     workflow.Counts
	flows    []workflow.Info // what Workflows lists
	damaged  map[pawl.ID]error
	paused   map[string]bool
	limits   map[string]pawl.Limits // of queues
	progress map[pawl.ID]pawl.Progress
	err      error // of every call
	doErr    error // of every job that Do is asked about
	pageMax  int   // the most jobs of a page; 0 for no limit

	opened, closed int
	openErr        error
	calls          []string
	listed         int // jobs that were read for lists
}

func (f *fake) open(context.Context, func(string)) (admin.Admin, error) {
	if f.openErr != nil {
		return nil, f.openErr
	}
	f.opened++
	return f, nil
}

func (f *fake) Summary(context.Context, admin.SummaryQuery) (admin.SummaryPage, error) {
	return admin.SummaryPage{}, f.called("summary")
}

func (f *fake) Progress(_ context.Context, ids ...pawl.ID) (all []admin.JobProgress, err error) {
	for _, id := range ids {
		if p, ok := f.progress[id]; ok {
			all = append(all, admin.JobProgress{ID: id, Progress: p})
		}
	}
	return all, f.err
}

// fakeRuns are the runs of a fake.
type fakeRuns struct {
	admin.Workflows
	f *fake
}

func (r fakeRuns) Count(context.Context) (workflow.Counts, error) { return r.f.runs, nil }

// List returns the runs one by one, of any status in the query.
func (r fakeRuns) List(_ context.Context, q admin.WorkflowQuery) (l workflow.Listing, err error) {
	if err := r.f.called("runs"); err != nil {
		return l, err
	}
	for _, run := range r.f.flows {
		if run.Status == q.Status {
			l.Runs = append(l.Runs, run)
		}
	}
	return l, nil
}

func (r fakeRuns) Show(_ context.Context, id pawl.ID, _ admin.RunDepth) (*admin.WorkflowRun, error) {
	for _, run := range r.f.flows {
		if run.Run == id {
			return &admin.WorkflowRun{Info: run, Journal: []workflow.Entry{{Seq: 1, Name: "charge", State: workflow.EntryDone, Kind: workflow.KindStep}}}, nil
		}
	}
	return nil, workflow.ErrNotFound
}

func (r fakeRuns) Do(_ context.Context, a admin.RunAction, runs ...pawl.ID) (errs []error, err error) {
	for _, run := range runs {
		errs = append(errs, r.f.called(string(a.Verb)+" run "+shortened(run)))
	}
	return errs, nil
}

func (f *fake) Workflows() admin.Workflows { return fakeRuns{f: f} }

func (f *fake) Schedules() admin.Schedules { return nil }
func (f *fake) Groups() admin.Groups       { return nil }

func (f *fake) called(name string) error {
	f.calls = append(f.calls, name)
	return f.err
}

func (f *fake) Stats(context.Context) (admin.Stats, error) {
	s := admin.Stats{Process: f.process, Done: maps.Clone(f.done)}
	s.Path, s.Format, s.Size, s.Free = f.path, 2, 13_002_342, 3_250_585
	at := map[string]int{}
	for _, e := range f.jobs {
		if _, known := at[e.Queue]; !known {
			at[e.Queue] = len(s.Queues)
			s.Queues = append(s.Queues, pawl.QueueStats{Name: e.Queue, Paused: f.paused[e.Queue], Limits: f.limits[e.Queue], Served: f.process != nil && e.Queue != "reports"})
		}
		q := &s.Queues[at[e.Queue]]
		*driver.CountOf(&q.Counts, e.State)++
		if e.State == pawl.Ready && (q.Oldest.IsZero() || e.NotBefore.Before(q.Oldest)) {
			q.Oldest = e.NotBefore
		}
	}
	return s, f.called("stats")
}

// List returns the jobs one by one; a cursor is an index into the list.
func (f *fake) List(_ context.Context, q admin.Query) (page admin.Page, err error) {
	if err := f.called("list " + string(q.State)); err != nil {
		return page, err
	}
	at, _ := strconv.Atoi(q.After)
	limit := q.Limit
	if f.pageMax > 0 {
		limit = min(limit, f.pageMax)
	}
	for ; at < len(f.jobs); at++ {
		e := f.jobs[at]
		if !q.Filter.Filter.Matches(e) {
			continue
		}
		if len(page.Jobs) == limit {
			page.Next = strconv.Itoa(at)
			break
		}
		listed := pawl.Listed{Job: e}
		if err := f.damaged[e.ID]; err != nil {
			listed = pawl.Listed{Job: &pawl.Envelope{ID: e.ID}, Err: err}
		}
		page.Jobs = append(page.Jobs, listed)
		f.listed++
	}
	return page, nil
}

func (f *fake) find(id pawl.ID) *pawl.Envelope {
	for _, e := range f.jobs {
		if e.ID == id {
			return e
		}
	}
	return nil
}

func (f *fake) Job(_ context.Context, id pawl.ID) (*pawl.Envelope, error) {
	if err := f.called("job"); err != nil {
		return nil, err
	}
	if e := f.find(id); e != nil {
		return e, f.damaged[id]
	}
	return nil, pawl.ErrNotFound
}

func (f *fake) Do(_ context.Context, a admin.Action, ids ...pawl.ID) ([]error, error) {
	errs := make([]error, len(ids))
	for i, id := range ids {
		f.calls = append(f.calls, string(a.Verb)+" "+shortened(id))
		if e := f.find(id); e == nil {
			errs[i] = pawl.ErrNotFound
		} else if errs[i] = f.doErr; f.doErr == nil {
			e.State, e.Death = pawl.Ready, nil
		}
	}
	return errs, f.err
}

func (f *fake) Await(context.Context, pawl.ID) (*pawl.Envelope, error) { return nil, errNotAsked }

func (f *fake) FindIDs(context.Context, string, string) ([]pawl.ID, string, error) {
	return nil, "", errNotAsked
}

func (f *fake) Pause(_ context.Context, queue string) error {
	f.paused[queue] = true
	return f.called("pause " + queue)
}

func (f *fake) Resume(_ context.Context, queue string) error {
	f.paused[queue] = false
	return f.called("resume " + queue)
}

func (f *fake) Events(ctx context.Context) iter.Seq2[admin.Event, error] {
	return func(yield func(admin.Event, error) bool) {
		if f.process == nil {
			yield(admin.Event{}, admin.ErrNotLive)
			return
		}
		<-ctx.Done()
		yield(admin.Event{}, ctx.Err())
	}
}

func (f *fake) Close() error { f.closed++; return nil }

var errNotAsked = errors.New("top does not do that")

func (f *fake) Enqueue(context.Context, ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return nil, errNotAsked
}
func (f *fake) Reap(context.Context) (int, error)       { return 0, errNotAsked }
func (f *fake) Check(context.Context) error             { return errNotAsked }
func (f *fake) Backup(context.Context, io.Writer) error { return errNotAsked }
func (f *fake) Effects(context.Context, string) ([]driver.Effect, string, error) {
	return nil, "", errNotAsked
}
func (f *fake) Restore(context.Context, []*pawl.Envelope, []driver.Effect) error { return errNotAsked }

// noon is the time of the tests.
var noon = time.Date(2026, 3, 1, 12, 3, 4, 0, time.UTC)

// testID returns a job ID with a number that a row shows.
func testID(n int) (id pawl.ID) {
	copy(id[:], []byte{0x01, 0x9c, 0xa9, 0x7f, 0x60, 0x40, 0x70, 0, 0x80})
	id[14], id[15] = byte(n>>8), byte(n)
	return id
}

// sampleQueue returns a queue with a job of each type.
func sampleQueue() *fake {
	f := &fake{
		path:    "/var/lib/billing/jobs.db",
		process: &admin.Process{PID: 4121, Name: "billing-api", Started: noon.Add(-time.Hour)},
		done:    map[string]admin.Done{"default": {Succeeded: 1000}, "email": {Succeeded: 500, Failed: 10}},
		paused:  map[string]bool{"reports": true},
	}
	add := func(queue, kind string, state pawl.State, change func(*pawl.Envelope)) {
		e := &pawl.Envelope{
			ID: testID(len(f.jobs) + 1), Queue: queue, Origin: queue, Kind: kind, State: state, MaxRetries: 3,
			Created: noon.Add(-10 * time.Minute), NotBefore: noon.Add(-10 * time.Minute),
			Payload: []byte("\x82\xa2to\xafada@example.org\xa1n\x07"),
		}
		if change != nil {
			change(e)
		}
		f.jobs = append(f.jobs, e)
	}
	for i := range 3 {
		add("default", "thumbnail", pawl.Ready, func(e *pawl.Envelope) { e.NotBefore = noon.Add(-time.Duration(i+1) * time.Second) })
	}
	add("default", "thumbnail", pawl.Leased, func(e *pawl.Envelope) { e.LeasedSince = noon.Add(-12 * time.Second) })
	add("email", "mail.send", pawl.Leased, func(e *pawl.Envelope) {
		e.LeasedSince, e.Attempts, e.Failures, e.Cancelled = noon.Add(-125*time.Second), 2, 2, true
		e.History = []pawl.Failure{{Attempt: 2, At: noon.Add(-5 * time.Minute), Error: "dial tcp 192.0.2.7:25: connection refused"}}
	})
	add("email", "mail.send", pawl.Delayed, func(e *pawl.Envelope) { e.NotBefore, e.Attempts = noon.Add(90*time.Second), 1 })
	add("email", "mail.digest", pawl.Delayed, func(e *pawl.Envelope) { e.NotBefore = noon.Add(30 * time.Second) })
	add("email", "mail.send", pawl.Ready, func(e *pawl.Envelope) { e.NotBefore = noon.Add(-4*time.Minute - 2*time.Second) })
	for i := range 4 {
		add("email", "mail.send", pawl.Dead, func(e *pawl.Envelope) {
			e.Attempts, e.Failures = 4, 4
			e.Death = &pawl.Death{Reason: pawl.ReasonExhausted, At: noon.Add(-time.Duration(3*(4-i)) * time.Hour)}
			e.History = []pawl.Failure{{Attempt: 4, At: e.Death.At, Error: "550 no such user\nsaid mx" + strconv.Itoa(i) + ".example.org"}}
		})
	}
	add("reports", "report", pawl.Ready, nil)
	return f
}

// sampleStats returns queues without jobs.
func sampleStats(names ...string) (queues []pawl.QueueStats) {
	for _, name := range names {
		queues = append(queues, pawl.QueueStats{Name: name})
	}
	return queues
}
