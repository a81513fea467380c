package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/account"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Flows are the flows of a schema. Each run has a step, and two transactions that count how often they
// take effect: its own, and that of a child.
type Flows struct {
	Engine *workflow.Engine
	Worker *worker.Worker
	Parent *workflow.Flow[string, string]
}

// NewFlows registers the flows with a worker over the queue.
func NewFlows(q *postgres.Queue, schema string) (*Flows, error) {
	f := &Flows{
		Engine: workflow.Open(q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()}),
		Worker: worker.New(q, &worker.Options{
			Concurrency: 4, Drain: 500 * time.Millisecond, StopGrace: 500 * time.Millisecond, Logger: hclog.NewNullLogger(),
		}),
	}
	count := func(r *workflow.Run, id, part string) error {
		_, err := workflow.StepTx(r, "count", func(tx postgres.Tx) (int, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := tx.Exec(ctx, "INSERT INTO "+schema+".trip AS t VALUES ($1, $2, 1) ON CONFLICT (run, part) DO UPDATE SET n = t.n + 1", id, part)
			return 0, err
		}, workflow.MaxRetries(1000), workflow.Backoff(pawl.Fixed(retry)))
		return err
	}
	child := workflow.Define("child", func(r *workflow.Run, id string) (string, error) { return id, count(r, id, "child") })
	f.Parent = workflow.Define("parent", func(r *workflow.Run, id string) (string, error) {
		if _, err := workflow.Step(r, "step", func(context.Context) (string, error) { return id, nil }); err != nil {
			return "", err
		}
		if err := count(r, id, "parent"); err != nil {
			return "", err
		}
		return workflow.Call(r, "child", child, id)
	})
	return f, f.Engine.Handle(context.Background(), f.Worker, f.Parent, child)
}

// openRuns is how many runs a client has started that have not ended, at most. Otherwise a loaded machine
// would have more and more of them to end.
const openRuns = 8

// flows starts runs and works on them until ctx ends.
func (u *User) flows(ctx context.Context, r *rand.Rand) {
	f, err := NewFlows(u.Queue, u.Schema)
	for err != nil { // the server is away
		if ctx.Err() != nil {
			return
		}
		pause(ctx)
		f, err = NewFlows(u.Queue, u.Schema)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Worker.Run(ctx) }()
	open := make(chan struct{}, openRuns)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case open <- struct{}{}:
		}
		id, number := strconv.FormatUint(r.Uint64(), 36), u.next()
		u.emit("begin", "start", number, id)
		run, err := f.Parent.Start(context.Background(), f.Engine, id, id)
		u.emit("end", number, u.outcome(err))
		go func() {
			for err == nil && ctx.Err() == nil {
				if _, failed := run.Result(ctx); !errors.Is(failed, postgres.ErrUnavailable) {
					break
				}
				pause(ctx)
			}
			<-open
		}()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(20+r.IntN(100)) * time.Millisecond):
		}
	}
	if err := <-ended; err != nil && !errors.Is(err, pawl.ErrClosed) {
		u.emit("odd", err)
	}
}

// Runs adds the runs to a list by the IDs that they were started with.
func (f *Flows) Runs(ctx context.Context, all map[string]account.Run) error {
	for after := ""; ; {
		page, err := f.Engine.List(ctx, workflow.Filter{Flow: f.Parent.Name()}, after, 100)
		if err != nil {
			return err
		}
		for _, run := range page.Runs {
			all[run.ID] = account.Run{Ended: run.Status == workflow.Done}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}
