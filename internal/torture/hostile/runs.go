package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// runsQueue is the queue of all runs.
const runsQueue = "runs"

// story returns the flow of the runs. The input of a run decides its course. A build with
// another name for the first step does not match the journals of this one.
func story(first string, gated bool) *workflow.Flow[string, string] {
	var f *workflow.Flow[string, string]
	f = workflow.Define("story", func(r *workflow.Run, what string) (string, error) {
		if _, err := workflow.Step(r, first, func(context.Context) (string, error) { return "a", nil }); err != nil {
			return "", err
		}
		if err := workflow.Publish(r, "percent", 40); err != nil {
			return "", err
		}
		if err := printed.Append(r, "between calls"); err != nil {
			return "", err
		}
		switch what {
		case "sleeps":
			return "", workflow.Sleep(r, "nap", 1000*time.Hour)
		case "waits":
			_, err := workflow.Step(r, "large", func(context.Context) (string, error) {
				return strings.Repeat("l", 5000), printed.Append(r, strings.Repeat("within a step ", 30))
			})
			if err != nil {
				return "", err
			}
			return goOn.Wait(r, 500*time.Hour)
		case "calls":
			return workflow.Call(r, "child", f, "waits")
		case "branches":
			return branches(r, gated)
		case "asks":
			return asks(r)
		case "retries":
			return workflow.Step(r, "hard", fails, workflow.Backoff(pawl.Fixed(time.Hour)))
		case "fails":
			r.Undo("undo", func(context.Context) error { return nil })
			return workflow.Step(r, "hard", fails, workflow.MaxRetries(0))
		}
		if _, err := workflow.Version(r, "tax", 1, 2); err != nil {
			return "", err
		}
		return workflow.StepTx(r, "tx", func(*bbolt.Tx) (string, error) { return strings.Repeat("o", 300), nil })
	}, workflow.OnQueue(runsQueue))
	return f
}

var goOn = workflow.DefineSignal[string]("go")

func fails(context.Context) (string, error) { return "", errors.New("boom") }

// gate returns a function that waits, and a function that ends the wait.
func gate(gated bool) (wait, open func()) {
	if !gated {
		return func() {}, func() {}
	}
	opened := make(chan struct{})
	return func() { <-opened }, func() { close(opened) }
}

// branches makes calls in branches. With gates they come in a fixed order, so the journal is the same each time. A
// damaged journal may keep the call before the end of a gate from returning, and the run does not know that a gate
// waits for it. So only bases have gates.
func branches(r *workflow.Run, gated bool) (string, error) {
	step := func(r *workflow.Run) (string, error) {
		return workflow.Step(r, "step", func(context.Context) (string, error) { return "b", nil })
	}
	awaitRace, raced := gate(gated)
	slow := workflow.Go(r, "slow", func(r *workflow.Run) (string, error) {
		awaitRace()
		return step(r)
	})
	fast := workflow.Go(r, "fast", step)
	_, err := fast.Wait(r)
	if err == nil {
		_, _, err = workflow.Race(r, "race", fast, slow)
	}
	raced()
	if err != nil {
		return "", err
	}
	awaitBoth, both := gate(gated)
	one := workflow.Go(r, "one", func(r *workflow.Run) (string, error) {
		awaitBoth() // otherwise its step may be written before the beginning of the other branch
		return step(r)
	})
	two := workflow.Go(r, "two", func(r *workflow.Run) (string, error) {
		if _, err := one.Wait(r); err != nil {
			return "", err
		}
		return goOn.Wait(r, workflow.Forever)
	})
	both()
	_, err = workflow.All(r, one, two)
	return "", err
}

// crew runs the jobs of a story, one at a time.
type crew struct {
	*workflow.Engine
	ctx    context.Context
	queue  *bolt.Queue
	worker *worker.Worker
	flow   *workflow.Flow[string, string]
}

// newCrew returns a crew of a build with this name of the first step.
func newCrew(ctx context.Context, q *bolt.Queue, first string, gated bool) (*crew, error) {
	c := &crew{ctx: ctx, queue: q, flow: story(first, gated)}
	c.Engine = workflow.Open(q, &workflow.Options{Build: first, Logger: hclog.NewNullLogger()})
	c.worker = worker.New(q, &worker.Options{Queues: []string{runsQueue}, Concurrency: 1, Logger: hclog.NewNullLogger()})
	return c, c.Handle(ctx, c.worker, c.flow, narrow(), paced())
}

// works runs up to most ready jobs.
func (c *crew) works(most int) error {
	for range most {
		if err := c.worker.ProcessOnce(c.ctx); err != nil {
			return err
		}
	}
	return nil
}

// all runs all ready jobs.
func (c *crew) all() error {
	err := c.works(1000)
	if errors.Is(err, pawl.ErrEmpty) {
		return nil
	}
	return errors.Join(err, errors.New("the runs do not end"))
}

// makeRuns makes runs in every state, with journals, signals, large values, streams, answers, and lines.
func (c *crew) makeRuns() error {
	var err error
	run := make(map[string]pawl.ID)
	start := func(id, what string) {
		h, startErr := c.flow.Start(c.ctx, c.Engine, id, what)
		if err = errors.Join(err, startErr); h != nil {
			run[id] = h.Run()
		}
	}
	do := func(e error) { err = errors.Join(err, e) }
	for _, what := range []string{"sleeps", "waits", "calls", "branches", "retries", "fails", "ends", "asks"} {
		start(what, what)
	}
	start("cancelled", "sleeps")
	start("terminated", "waits")
	start("paused", "sleeps")
	start("blocked", "sleeps")
	if do(c.all()); err != nil {
		return err
	}
	do(c.makeRequests(run["asks"]))
	do(c.makeLines())
	do(c.Cancel(c.ctx, run["cancelled"], "why"))
	do(c.Terminate(c.ctx, run["terminated"], "why"))
	do(c.all())
	do(c.Resume(c.ctx, run["blocked"]))
	other, handleErr := newCrew(c.ctx, c.queue, "other", true)
	if handleErr != nil {
		return errors.Join(err, handleErr)
	}
	do(other.all())
	do(c.Pause(c.ctx, run["paused"]))
	_, forkErr := c.Fork(c.ctx, run["waits"], "large", "forked")
	do(forkErr)
	for n := range 3 {
		do(goOn.Send(c.ctx, c.Engine, run["sleeps"], fmt.Sprint("signal ", n), fmt.Sprint("order/", n)))
	}
	start("leased", "ends")
	start("dead", "ends")
	leases, fetchErr := c.queue.Fetch(c.ctx, pawl.Request{Queues: []string{runsQueue}, Max: 10, Wait: pawl.WaitNot})
	do(fetchErr)
	for _, l := range leases {
		if l.ID == run["dead"] {
			do(c.queue.Settle(c.ctx, l.Abandon(pawl.ReasonPermanent, errors.New("disk on fire"))))
		}
	}
	start("ready", strings.Repeat("ends ", 100)) // too long for the row of the run
	return err
}
