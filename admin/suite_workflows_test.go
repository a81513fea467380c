package admin

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Operations on workflows have the effect of the engine's own verbs, wherever the queue is.
func TestSuiteWorkflows(t *testing.T) { runSuite(t, workflowCases) }

// The flows of the suite. Order waits for a signal, and the build determines the name of its
// first step.
var (
	suiteApproved = workflow.DefineSignal[map[string]any]("approved")
	suiteDouble   = workflow.Define("double", func(r *workflow.Run, n int) (int, error) {
		return workflow.Step(r, "double", func(context.Context) (int, error) { return 2 * n, nil })
	}, workflow.Retain(workflow.Forever))
	suiteNap = workflow.Define("nap", func(r *workflow.Run, d time.Duration) (bool, error) {
		return true, workflow.Sleep(r, "bed", d)
	})
)

func suiteOrder(step string) *workflow.Flow[string, string] {
	return workflow.Define("order", func(r *workflow.Run, name string) (string, error) {
		if _, err := workflow.Step(r, step, func(context.Context) ([]byte, error) { return make([]byte, 5000), nil }); err != nil {
			return "", err
		}
		if err := workflow.Publish(r, "name", strings.TrimSpace(name)); err != nil {
			return "", err
		}
		answer, err := suiteApproved.Wait(r, 72*time.Hour)
		if err != nil {
			return "", err
		}
		by, _ := answer["By"].(string)
		return by, nil
	}, workflow.OnQueue("orders"))
}

// oddID is an ID with bytes that a URL, JSON or a name cannot contain unescaped.
const oddID = "a/b?c=d&e#f:%00\xff\x1b\u202e "

// runsByName maps flow and ID to the runs of a fixture.
var runsByName = make(map[string]pawl.ID)

// someRuns fills a fixture with runs: double:4 done, nap:1 sleeping, order:1 and an odd one
// waiting, order:2 paused with an unread signal.
func someRuns(f *fixture) {
	ctx := context.Background()
	e := workflow.Open(f.q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()})
	clear(runsByName)
	f.settle(e, 5, []workflow.Definition{suiteDouble, suiteNap, suiteOrder("first")}, func() {
		d, err := suiteDouble.Start(ctx, e, "4", 4)
		require.NoError(f.t, err)
		runsByName["double:4"] = d.Run()
		n, err := suiteNap.Start(ctx, e, "1", time.Hour)
		require.NoError(f.t, err)
		runsByName["nap:1"] = n.Run()
		for i, id := range []string{"1", "2", oddID} {
			input := id
			if i == 0 {
				input += strings.Repeat(" ", 300) // the row of a run has no large input
			}
			o, err := suiteOrder("first").Start(ctx, e, id, input)
			require.NoError(f.t, err)
			runsByName["order:"+id] = o.Run()
		}
	})
	require.NoError(f.t, e.Pause(ctx, runsByName["order:2"]))
	require.NoError(f.t, suiteApproved.Send(ctx, e, runsByName["order:2"], map[string]any{"By": "ada"}, "once"))
	f.pass(time.Minute)
}

// settle lets a worker run flows until runs were released that many times, because they wait or
// have ended.
func (f *fixture) settle(e *workflow.Engine, times int, flows []workflow.Definition, do func()) {
	f.t.Helper()
	var down sync.WaitGroup
	down.Add(times)
	defer f.q.Listen(func(event pawl.Event) {
		switch event.Type {
		case pawl.EventSnoozed, pawl.EventSucceeded:
			down.Done()
		}
	})()
	w := worker.New(f.q, &worker.Options{Queues: []string{"default", "orders"}, Logger: hclog.NewNullLogger()})
	require.NoError(f.t, e.Handle(context.Background(), w, flows...))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	do()
	down.Wait()
	stop()
	require.NoError(f.t, <-ended)
}

// doRun carries out an action on one run.
func doRun(ctx context.Context, w Workflows, a RunAction, run pawl.ID) error {
	errs, err := w.Do(ctx, a, run)
	if err != nil {
		return err
	}
	return errs[0]
}

// recoded is someRuns with changed code.
func recoded(f *fixture) {
	someRuns(f)
	e := workflow.Open(f.q, &workflow.Options{Build: "2", Logger: hclog.NewNullLogger()})
	require.NoError(f.t, e.Handle(context.Background(), worker.New(f.q, nil), suiteOrder("other"), suiteNap))
}

// spoilRow overwrites a row of a run.
func spoilRow(bucket, name string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		db, err := bbolt.Open(f.path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			rows, run := tx.Bucket([]byte("pawl.workflow")).Bucket([]byte(bucket)), runsByName[name]
			key, _ := rows.Cursor().Seek(run[:])
			return rows.Put(append([]byte(nil), key...), []byte("\x01spoilt"))
		}))
		require.NoError(t, db.Close())
	}
}

// info returns a run as listed.
func info(t *testing.T, w Workflows, name string) workflow.Info {
	t.Helper()
	all, err := w.Show(t.Context(), runsByName[name], RunInfo)
	require.NoError(t, err)
	require.Empty(t, all.Journal)
	return all.Info
}

// names returns the runs of a query, by flow and ID, read page by page.
func names(t *testing.T, w Workflows, q WorkflowQuery) (all []string) {
	t.Helper()
	for run, err := range WorkflowRuns(t.Context(), w, q) {
		require.NoError(t, err)
		require.NotEmpty(t, run.Status, run.Error)
		all = append(all, run.Flow+":"+run.ID)
	}
	return all
}

var workflowCases = []suiteCase{
	{"pages to the end are all runs in the order of their start, whatever their size", someRuns, nil, func(t *testing.T, s *suiteTest) {
		for _, limit := range []int{0, 1, 2, 1000, 5000} {
			require.Equal(t, []string{"double:4", "nap:1", "order:1", "order:2", "order:" + oddID}, names(t, s.Workflows(), WorkflowQuery{Limit: limit}))
		}
	}},
	{"a filter of runs chooses what it matches, field by field", someRuns, nil, func(t *testing.T, s *suiteTest) {
		for want, f := range map[string]workflow.Filter{
			"double:4":               {Status: workflow.Done},
			"nap:1":                  {Flow: "nap"},
			"order:2":                {Status: workflow.Paused},
			"order:" + oddID:         {Prefix: "a/b?c=d&e#f:%00\xff"},
			"order:1 order:" + oddID: {Flow: "order", Status: workflow.Waiting},
			"nap:1 order:1":          {Prefix: "1"},
			"":                       {Flow: "nobody's"},
		} {
			require.Equal(t, want, strings.Join(names(t, s.Workflows(), WorkflowQuery{Filter: f, Limit: 1}), " "))
		}
	}},
	{"runs are counted by what their rows say", someRuns, nil, func(t *testing.T, s *suiteTest) {
		c, err := s.Workflows().Count(t.Context())
		require.NoError(t, err)
		require.Equal(t, workflow.Counts{Active: 3, Paused: 1, Done: 1}, c)
	}},
	{"what is no query of runs is refused", someRuns, nil, func(t *testing.T, s *suiteTest) {
		for _, q := range []WorkflowQuery{
			{Limit: -1}, {Filter: workflow.Filter{Status: "lost"}}, {After: "nonsense"}, {After: strings.Repeat("A", 10_000)},
		} {
			_, err := s.Workflows().List(t.Context(), q)
			require.ErrorIs(t, err, pawl.ErrInvalid, "%+v", q)
		}
	}},
	{"a file without workflows has no run", nil, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		require.Empty(t, names(t, w, WorkflowQuery{}))
		c, err := w.Count(t.Context())
		require.NoError(t, err)
		require.Zero(t, c)
		_, err = w.Find(t.Context(), "order", "1")
		require.ErrorIs(t, err, workflow.ErrNotFound)
		n, err := w.Prune(t.Context(), s.now())
		require.NoError(t, err)
		require.Zero(t, n)
	}},
	{"the job of a run that has not ended is not cancelled in the place of the run, unless that is forced", someRuns, nil, func(t *testing.T, s *suiteTest) {
		run := runsByName["order:1"]
		results, err := s.Do(t.Context(), Action{Verb: Cancel}, run)
		require.NoError(t, err)
		require.ErrorIs(t, results[0], ErrWorkflowJob)
		require.ErrorContains(t, results[0], "order:1")
		shown, err := s.Workflows().Show(t.Context(), run, RunInfo)
		require.NoError(t, err)
		require.Equal(t, workflow.Waiting, shown.Status)
		results, err = s.Do(t.Context(), Action{Verb: Cancel, Force: true}, run)
		require.NoError(t, err)
		require.NoError(t, results[0])
		shown, err = s.Workflows().Show(t.Context(), run, RunInfo)
		require.NoError(t, err)
		require.Equal(t, workflow.Dead, shown.Status)
	}},
	{"a run is found by its flow and ID, of any bytes", someRuns, nil, func(t *testing.T, s *suiteTest) {
		for name, want := range runsByName {
			flow, id, _ := strings.Cut(name, ":")
			run, err := s.Workflows().Find(t.Context(), flow, id)
			require.NoError(t, err)
			require.Equal(t, want, run)
		}
		_, err := s.Workflows().Find(t.Context(), "nap", "2")
		require.ErrorIs(t, err, workflow.ErrNotFound)
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
	{"a run is shown as deep as was asked, with values as they were stored", someRuns, nil, func(t *testing.T, s *suiteTest) {
		for name, run := range runsByName {
			_, id, _ := strings.Cut(name, ":")
			all, err := s.Workflows().Show(t.Context(), run, RunValues)
			require.NoError(t, err)
			require.Equal(t, run, all.Run)
			require.Equal(t, id, all.ID)
			journal, err := s.Workflows().Show(t.Context(), run, RunJournal)
			require.NoError(t, err)
			require.Nil(t, journal.Input)
			require.Len(t, journal.Journal, len(all.Journal))
			require.Nil(t, journal.Journal[0].Result)
			require.Equal(t, all.Info, info(t, s.Workflows(), name))
		}
		all, err := s.Workflows().Show(t.Context(), runsByName["order:2"], RunValues)
		require.NoError(t, err)
		require.Equal(t, packOf(t, "2"), all.Input)
		require.Nil(t, all.Output)
		require.Len(t, all.Journal, 2)
		require.Equal(t, packOf(t, make([]byte, 5000)), all.Journal[0].Result)
		require.Equal(t, "first", all.Journal[0].Step())
		require.Equal(t, workflow.EntryPending, all.Journal[1].State)
		require.True(t, all.Journal[1].Due.Equal(noon.Add(72*time.Hour)))
		require.Equal(t, []workflow.Pending{{Name: "approved", N: 1, Bytes: 8, Payload: packOf(t, map[string]any{"By": "ada"})}}, all.Signals)
		require.Equal(t, map[string][]byte{"name": packOf(t, "2")}, all.Published)
		done, err := s.Workflows().Show(t.Context(), runsByName["double:4"], RunValues)
		require.NoError(t, err)
		require.Equal(t, packOf(t, 8), done.Output)
		_, err = s.Workflows().Show(t.Context(), pawl.ID{1}, RunValues)
		require.ErrorIs(t, err, workflow.ErrNotFound)
	}},
	{"a signal is kept for its run, once for its key, and wakes one that waits", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w, run := s.Workflows(), runsByName["order:1"]
		payload := packOf(t, map[string]any{"By": "eve"})
		for range 2 {
			require.NoError(t, w.Signal(t.Context(), run, "other", payload, "key"))
		}
		require.Equal(t, workflow.Waiting, info(t, w, "order:1").Status)
		all, err := w.Show(t.Context(), run, RunValues)
		require.NoError(t, err)
		require.Equal(t, []workflow.Pending{{Name: "other", N: 1, Bytes: len(payload), Payload: payload}}, all.Signals)
		require.NoError(t, w.Signal(t.Context(), run, "approved", payload, ""))
		require.Equal(t, workflow.Running, info(t, w, "order:1").Status)

		require.ErrorIs(t, w.Signal(t.Context(), pawl.ID{1}, "approved", payload, ""), workflow.ErrNotFound)
		require.ErrorIs(t, w.Signal(t.Context(), runsByName["double:4"], "approved", payload, ""), workflow.ErrNotRunning)
		require.ErrorIs(t, w.Signal(t.Context(), run, "_odd", payload, ""), pawl.ErrInvalid)
		require.ErrorIs(t, w.Signal(t.Context(), run, "approved", make([]byte, workflow.MaxValue+1), ""), workflow.ErrTooLarge)
	}},
	{"a run is asked to end, for a reason, and the first one stays", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Cancel, Reason: "no \xff stock"}, runsByName["order:1"]))
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Cancel, Reason: "again"}, runsByName["order:1"]))
		require.Equal(t, "no \xff stock", info(t, w, "order:1").Cancelling)
		require.Equal(t, workflow.Running, info(t, w, "order:1").Status)
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Terminate, Reason: "at once"}, runsByName["order:1"]))
		require.Equal(t, "at once", info(t, w, "order:1").Cancelling)
		require.ErrorIs(t, doRun(t.Context(), w, RunAction{Verb: Pause}, runsByName["order:1"]), pawl.ErrConflict)
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Terminate, Reason: ""}, runsByName["nap:1"]))
		require.NotEmpty(t, info(t, w, "nap:1").Cancelling)
	}},
	{"a run is paused and resumed", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Pause}, runsByName["nap:1"]))
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Pause}, runsByName["nap:1"]))
		require.Equal(t, workflow.Paused, info(t, w, "nap:1").Status)
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Resume}, runsByName["nap:1"]))
		require.NotEqual(t, workflow.Paused, info(t, w, "nap:1").Status)
	}},
	{"a run that has another status than the ones asked for is left alone", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w, nap, order := s.Workflows(), runsByName["nap:1"], runsByName["order:1"]
		require.Equal(t, workflow.Sleeping, info(t, w, "nap:1").Status)
		require.Equal(t, workflow.Waiting, info(t, w, "order:1").Status)
		for _, verb := range []Verb{Cancel, Terminate, Pause, Resume} {
			before := info(t, w, "nap:1")
			for _, dry := range []bool{true, false} {
				err := doRun(t.Context(), w, RunAction{Verb: verb, If: []workflow.Status{workflow.Waiting, workflow.Paused}, DryRun: dry}, nap)
				require.ErrorIs(t, err, pawl.ErrNotEligible, verb)
				require.ErrorContains(t, err, "sleeping", verb)
				require.NoError(t, doRun(t.Context(), w, RunAction{Verb: verb, If: []workflow.Status{workflow.Sleeping}, DryRun: true}, nap))
			}
			require.Equal(t, before, info(t, w, "nap:1"), verb)
		}
		errs, err := w.Do(t.Context(), RunAction{Verb: Pause, If: []workflow.Status{workflow.Waiting}}, nap, order, pawl.ID{1})
		require.NoError(t, err)
		require.ErrorIs(t, errs[0], pawl.ErrNotEligible)
		require.NoError(t, errs[1])
		require.ErrorIs(t, errs[2], workflow.ErrNotFound)
		require.Equal(t, workflow.Paused, info(t, w, "order:1").Status)
		require.NoError(t, doRun(t.Context(), w, RunAction{Verb: Resume, If: []workflow.Status{workflow.Paused}}, order))
		require.NotEqual(t, workflow.Paused, info(t, w, "order:1").Status)
	}},
	{"what has ended, and what is not there, takes no request", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		for run, want := range map[pawl.ID]error{runsByName["double:4"]: workflow.ErrNotRunning, {1}: workflow.ErrNotFound} {
			require.ErrorIs(t, doRun(t.Context(), w, RunAction{Verb: Cancel, Reason: "x"}, run), want)
			require.ErrorIs(t, doRun(t.Context(), w, RunAction{Verb: Terminate, Reason: "x"}, run), want)
			require.ErrorIs(t, doRun(t.Context(), w, RunAction{Verb: Pause}, run), want)
			require.ErrorIs(t, doRun(t.Context(), w, RunAction{Verb: Resume}, run), want)
			require.ErrorIs(t, doRun(t.Context(), w, RunAction{Verb: Resume, DryRun: true}, run), want)
			require.ErrorIs(t, w.Verify(t.Context(), run), want)
		}
	}},
	{"a fork has the steps before its own, and leaves the other run alone", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w, from := s.Workflows(), runsByName["order:2"]
		made, err := w.Fork(t.Context(), from, "approved", oddID+"2")
		require.NoError(t, err)
		all, err := w.Show(t.Context(), made, RunValues)
		require.NoError(t, err)
		require.Equal(t, from, all.Forked)
		require.Equal(t, oddID+"2", all.ID)
		require.Len(t, all.Journal, 1)
		require.Empty(t, all.Signals)
		require.Equal(t, workflow.Paused, info(t, w, "order:2").Status)

		_, err = w.Fork(t.Context(), from, "approved", oddID+"2")
		require.ErrorIs(t, err, workflow.ErrConflict)
		_, err = w.Fork(t.Context(), from, "nothing", "3")
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = w.Fork(t.Context(), pawl.ID{1}, "approved", "3")
		require.ErrorIs(t, err, workflow.ErrNotFound)
	}},
	{"runs are compared with the code of the app, and where there is none they are read", recoded, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		if !s.live {
			require.ErrorIs(t, w.Verify(t.Context(), runsByName["order:1"]), ErrNotLive)
			return
		}
		require.NoError(t, w.Verify(t.Context(), runsByName["nap:1"]))
		err := w.Verify(t.Context(), runsByName["order:1"])
		var differs *workflow.DeterminismError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, differs.Error(), err.Error())
		require.Equal(t, []string{"order", "1", `step "first"`, `step "other"`, "1"}, []string{differs.Flow, differs.ID, differs.Want, differs.Got, differs.Wrote})
		require.EqualValues(t, 1, differs.Seq)
		require.NotEmpty(t, differs.Build)
		require.NotEmpty(t, differs.Reason)
	}},
	{"an app that lacks a flow says so", nil, nil, func(t *testing.T, s *suiteTest) {
		if !s.live {
			return // it has none
		}
		e := workflow.Open(s.q, &workflow.Options{Logger: hclog.NewNullLogger()})
		h, err := suiteNap.Start(t.Context(), e, "1", time.Hour)
		require.NoError(t, err)
		require.ErrorIs(t, s.Workflows().Verify(t.Context(), h.Run()), workflow.ErrNoFlow)
	}},
	{"what ended before a time goes for good, and open runs stay", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		n, err := w.Prune(t.Context(), noon)
		require.NoError(t, err)
		require.Zero(t, n, "it ended at that time")
		reported := int64(0)
		n, err = w.Prune(driver.WithProgress(t.Context(), func(done, _ int64) { reported = done }), noon.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.EqualValues(t, 1, reported)
		_, err = w.Show(t.Context(), runsByName["double:4"], RunInfo)
		require.ErrorIs(t, err, workflow.ErrNotFound)
		require.Len(t, names(t, w, WorkflowQuery{}), 4)
	}},
	{"a damaged run is in the list with its error, and the others are there", someRuns, spoilRow("runs", "order:1"), func(t *testing.T, s *suiteTest) {
		page, err := s.Workflows().List(t.Context(), WorkflowQuery{})
		require.NoError(t, err)
		require.Len(t, page.Runs, 5)
		for _, run := range page.Runs {
			require.Equal(t, run.Run == runsByName["order:1"], run.Status == "", "%+v", run)
		}
		_, err = s.Workflows().Show(t.Context(), runsByName["order:1"], RunJournal)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorIs(t, s.Workflows().Verify(t.Context(), runsByName["order:1"]), pawl.ErrCorrupt)
	}},
	{"a damaged entry is in the journal with its error, and fails the verification", someRuns, spoilRow("steps", "order:1"), func(t *testing.T, s *suiteTest) {
		all, err := s.Workflows().Show(t.Context(), runsByName["order:1"], RunJournal)
		require.NoError(t, err)
		require.Len(t, all.Journal, 2)
		require.Empty(t, all.Journal[0].State)
		require.NotEmpty(t, all.Journal[0].Error)
		require.ErrorIs(t, s.Workflows().Verify(t.Context(), runsByName["order:1"]), pawl.ErrCorrupt)
	}},
	{"a damaged result fails the verification", someRuns, spoilRow("blobs", "order:1"), func(t *testing.T, s *suiteTest) {
		require.ErrorIs(t, s.Workflows().Verify(t.Context(), runsByName["order:1"]), pawl.ErrCorrupt)
	}},
	{"a context that has ended ends every call about runs", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w, run := s.Workflows(), runsByName["order:1"]
		_, err := s.Stats(t.Context()) // so that nothing fails for another reason
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range map[string]func() error{
			"List":      func() error { _, err := w.List(ctx, WorkflowQuery{}); return err },
			"Find":      func() error { _, err := w.Find(ctx, "nap", "1"); return err },
			"Show":      func() error { _, err := w.Show(ctx, run, RunValues); return err },
			"Signal":    func() error { return w.Signal(ctx, run, "approved", nil, "") },
			"Cancel":    func() error { return doRun(ctx, w, RunAction{Verb: Cancel, Reason: "x"}, run) },
			"Terminate": func() error { return doRun(ctx, w, RunAction{Verb: Terminate, Reason: "x"}, run) },
			"Pause":     func() error { return doRun(ctx, w, RunAction{Verb: Pause}, run) },
			"Resume":    func() error { return doRun(ctx, w, RunAction{Verb: Resume}, run) },
			"Fork":      func() error { _, err := w.Fork(ctx, run, "first", "x"); return err },
			"Verify":    func() error { return w.Verify(ctx, run) },
			"Prune":     func() error { _, err := w.Prune(ctx, noon.Add(time.Hour)); return err },
		} {
			require.ErrorIs(t, call(), context.Canceled, name)
		}
	}},
}
