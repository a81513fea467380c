package workflows

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// pawlName is this library's among the engines.
const pawlName = "pawl"

// pawlEngine is this library with its default options, and a slot for each caller: peers
// bound the number of workflows under way no lower.
func pawlEngine() engine {
	return engine{
		name: pawlName, durability: synced, settings: "default options, a slot of the worker for each caller, Start and Result",
		modules: []string{"github.com/gopawl/pawl", "go.etcd.io/bbolt"},
		open:    openPawl,
	}
}

type pawlStore struct {
	queue    io.Closer
	engine   *workflow.Engine
	pong     *workflow.Flow[int, int]
	answered chan int
	stop     context.CancelFunc
	worked   chan error
}

var pawlFlow = workflow.Define("add", func(r *workflow.Run, n int) (int, error) {
	for range steps {
		var err error
		n, err = workflow.Step(r, "add", func(context.Context) (int, error) { return n + 1, nil })
		if err != nil {
			return 0, err
		}
	}
	return n, nil
})

func openPawl(ctx context.Context, dir string, callers int) (store, error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Error})
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: logger})
	if err != nil {
		return nil, err
	}
	return workOn(ctx, q, callers, logger)
}

// queue is one that workflows run on, and that its owner closes.
type queue interface {
	pawl.Queue
	workflow.Store
	io.Closer
}

// workOn starts an engine and a worker on a queue. It closes the queue if it fails.
func workOn(ctx context.Context, q queue, callers int, logger pawl.Logger) (store, error) {
	s := &pawlStore{
		queue: q, engine: workflow.Open(q, &workflow.Options{Logger: logger}),
		answered: make(chan int, 1), worked: make(chan error, 1),
	}
	s.pong = pawlPong(s.answered)
	w := worker.New(q, &worker.Options{Concurrency: callers, Logger: logger})
	if err := s.engine.Handle(ctx, w, pawlFlow, s.pong); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	ctx, s.stop = context.WithCancel(ctx)
	go func() { s.worked <- w.Run(ctx) }()
	return s, nil
}

func (s *pawlStore) run(ctx context.Context, id string, input int) (int, error) {
	h, err := pawlFlow.Start(ctx, s.engine, id, input)
	if err != nil {
		return 0, err
	}
	return h.Result(ctx)
}

func (s *pawlStore) close() error {
	s.stop()
	err := <-s.worked
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, s.queue.Close())
}
