package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// decades is longer than every test, even if a file with a test's clock meets the machine's
// clock.
const decades = 30 * 365 * 24 * time.Hour

// The flows of test files and of the app for scripts.
var (
	approved = workflow.DefineSignal[map[string]any]("approved")
	said     = workflow.DefineStream[string]("words")

	hello = workflow.Define("hello", func(r *workflow.Run, name string) (string, error) {
		return workflow.Step(r, "greet", func(context.Context) (string, error) { return "hello " + name, nil })
	})
	order = workflow.Define("order", func(r *workflow.Run, lines int) (string, error) {
		price, err := workflow.Step(r, "reserve", func(context.Context) (int, error) { return 7 * lines, nil })
		if err != nil {
			return "", err
		}
		if err := workflow.Publish(r, "price", price); err != nil {
			return "", err
		}
		for _, word := range []string{"reserved", "priced"} {
			if err := said.Append(r, word); err != nil {
				return "", err
			}
		}
		answer, err := approved.Wait(r, decades)
		if err != nil {
			return "", err
		}
		return workflow.Step(r, "charge", func(context.Context) (string, error) {
			by, _ := answer["By"].(string)
			return "approved by " + by, nil
		})
	}, workflow.Receives(approved))
	nap = workflow.Define("nap", func(r *workflow.Run, d time.Duration) (bool, error) {
		return true, workflow.Sleep(r, "bed", d)
	})
	noCard = workflow.Define("broken", func(r *workflow.Run, _ int) (bool, error) {
		return workflow.Step(r, "card", func(context.Context) (bool, error) {
			return false, pawl.Permanent(errors.New("no such card"))
		})
	})
)

// shift is a flow whose build determines the name of its first step, and that waits for a
// signal.
func shift(step string) *workflow.Flow[int, int] {
	return workflow.Define("shift", func(r *workflow.Run, n int) (int, error) {
		n, err := workflow.Step(r, step, func(context.Context) (int, error) { return n + 1, nil })
		if err != nil {
			return 0, err
		}
		_, err = approved.Wait(r, workflow.Forever)
		return n, err
	})
}

// flows returns the flows of a build of the app: the first, or one with changed code.
func flows(changed bool) (build string, all []workflow.Definition) {
	if changed {
		return "2", []workflow.Definition{hello, order, nap, noCard, shift("second")}
	}
	return "1", []workflow.Definition{hello, order, nap, noCard, shift("first")}
}

// workflows fills a file with a run in each status: hello:ada done, broken:1 failed, order:1 waiting
// for a signal, nap:1 sleeping, shift:1 waiting, shift:2 blocked by build 2, nap:dead
// with a dead job, order:paused paused, order:gone terminated, order:off cancelled.
func workflows(f *file) {
	f.t.Helper()
	ctx := context.Background()
	must := func(err error) { require.NoError(f.t, err) }
	build, all := flows(false)
	e := workflow.Open(f.q, &workflow.Options{Build: build, Logger: hclog.NewNullLogger()})
	ids := make(map[string]pawl.ID)
	note := func(name string, id pawl.ID, err error) {
		must(err)
		ids[name] = id
		f.pass(time.Second)
	}
	begin := func(flow *workflow.Flow[int, string], id string) {
		h, err := flow.Start(ctx, e, id, 6)
		note(flow.Name()+":"+id, h.Run(), err)
	}
	f.settle(e, all, 10, func() {
		h, err := hello.Start(ctx, e, "ada", "ada", workflow.Attributes(map[string]string{"customer": "ada"}))
		note("hello:ada", h.Run(), err)
		b, err := noCard.Start(ctx, e, "1", 1)
		note("broken:1", b.Run(), err)
		begin(order, "1")
		n, err := nap.Start(ctx, e, "1", decades)
		note("nap:1", n.Run(), err)
		for _, id := range []string{"1", "2"} {
			s, err := shift("first").Start(ctx, e, id, 1)
			note("shift:"+id, s.Run(), err)
		}
		n, err = nap.Start(ctx, e, "dead", decades)
		note("nap:dead", n.Run(), err)
		begin(order, "paused")
		begin(order, "gone")
		begin(order, "off")
	})
	must(f.q.Cancel(ctx, ids["nap:dead"]))
	must(e.Pause(ctx, ids["order:paused"]))
	f.pass(time.Minute)
	f.settle(e, all, 2, func() {
		must(e.Terminate(ctx, ids["order:gone"], "no stock"))
		must(e.Cancel(ctx, ids["order:off"], "the customer called"))
	})
	build, all = flows(true)
	e = workflow.Open(f.q, &workflow.Options{Build: build, Logger: hclog.NewNullLogger()})
	f.settle(e, all, 1, func() { must(approved.Send(ctx, e, ids["shift:2"], nil, "")) })
	must(approved.Send(ctx, e, ids["order:paused"], map[string]any{"By": "eve"}, ""))
}

// printingRuns lists command lines that print every field, with the file of workflows. They run
// in this order.
var printingRuns = []string{
	"stats", "wf list", "wf show order:paused", "wf stream order:1 words", "wf signal order:1 approved", "wf signal order:1 approved --dry-run",
	"wf cancel order:1 order:off", "wf terminate --flow nap -y", "wf pause --all -y --dry-run", "wf resume shift:2",
	"wf fork hello:ada --from greet --id again", "wf verify", "wf prune -y",
}

// settle lets a worker run flows until runs were released that many times, because they wait or
// have ended.
func (f *file) settle(e *workflow.Engine, all []workflow.Definition, times int, do func()) {
	f.t.Helper()
	var down sync.WaitGroup
	down.Add(times)
	defer f.q.Listen(func(event pawl.Event) {
		switch event.Type {
		case pawl.EventSnoozed, pawl.EventSucceeded:
			down.Done()
		}
	})()
	w := worker.New(f.q, &worker.Options{Logger: hclog.NewNullLogger()})
	require.NoError(f.t, e.Handle(context.Background(), w, all...))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	do()
	down.Wait()
	stop()
	require.NoError(f.t, <-ended)
}

// spoilRun overwrites the row of a run: spoilrun app.db shift:2.
func spoilRun(ts *testscript.TestScript, _ bool, args []string) {
	flow, id, _ := strings.Cut(args[1], ":")
	db, err := bbolt.Open(ts.MkAbs(args[0]), 0o600, nil)
	ts.Check(err)
	ts.Check(db.Update(func(tx *bbolt.Tx) error {
		all := tx.Bucket([]byte("pawl.workflow"))
		sealed := all.Bucket([]byte("ids")).Get([]byte(flow + "\x00" + id)) // a version, the run, a checksum
		return all.Bucket([]byte("runs")).Put(sealed[1:17], []byte("\x01spoilt"))
	}))
	ts.Check(db.Close())
}

// until runs a command until its output has a line: until 'done' jobctl wf show hello:ada. It
// fails after many attempts.
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern := mustCompile(ts, args[0])
	for range 2000 {
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			ts.Logf("%v: %s", err, ts.ReadFile("stderr"))
		}
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("no match for %q in %s", args[0], ts.ReadFile("stdout"))
}
