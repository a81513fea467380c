package system

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// Pawl is this library with its default options.
func Pawl() System {
	return System{
		Name:       "pawl",
		Durability: Synced,
		Settings:   "default options",
		Version:    "this checkout",
		Open: func(_ context.Context, dir string, _ *Server) (Queue, error) {
			return OpenPawl(dir)
		},
	}
}

// PawlQueue is a queue of this library in a file, for cases that ask for more than a Queue.
type PawlQueue struct {
	client
	Bolt *bolt.Queue
}

// NewPawlQueue returns an open queue as one that is measured.
func NewPawlQueue(q *bolt.Queue) *PawlQueue { return &PawlQueue{client{q}, q} }

// client stores payloads as jobs and runs them, on any engine of this library.
type client struct {
	queue interface {
		pawl.Queue
		io.Closer
	}
}

// PawlFile is the name of the file in the folder that OpenPawl is given.
const PawlFile = "jobs.db"

// Blob is the kind of every job: its arguments are bytes.
var Blob = pawl.Define[[]byte]("bench.blob")

// OpenPawl opens the queue in a folder.
func OpenPawl(dir string) (*PawlQueue, error) {
	q, err := bolt.Open(filepath.Join(dir, PawlFile), &bolt.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		return nil, err
	}
	return NewPawlQueue(q), nil
}

func (q client) Close() error { return q.queue.Close() }

func (q client) Enqueue(ctx context.Context, payload []byte) error {
	_, err := Blob.Enqueue(ctx, q.queue, payload)
	return err
}

func (q client) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	return q.EnqueueWith(ctx, payloads)
}

// EnqueueWith is EnqueueAll with options.
func (q client) EnqueueWith(ctx context.Context, payloads [][]byte, opts ...pawl.Option) error {
	jobs := make([]*pawl.Envelope, len(payloads))
	for i, payload := range payloads {
		job, err := Blob.Envelope(payload, opts...)
		if err != nil {
			return err
		}
		jobs[i] = job
	}
	_, err := q.queue.Enqueue(ctx, jobs...)
	return err
}

func (q client) Work(ctx context.Context, workers int, handle func(payload []byte)) error {
	w := worker.New(q.queue, &worker.Options{Concurrency: workers, Logger: hclog.NewNullLogger()})
	worker.Handle(w, Blob, func(_ context.Context, job *pawl.Job[[]byte]) error {
		handle(job.Args)
		return nil
	})
	if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
