package redis_test

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/redis"
	"github.com/gopawl/pawl/worker"
)

// openSynced opens a queue that loses no job.
func openSynced(ctx context.Context) (*redis.Queue, error) {
	q, err := redis.Open(ctx, "redis://localhost:6379/0", nil)
	if err != nil {
		return nil, err
	}
	if err := pawl.Require(q, pawl.Synced); err != nil {
		return nil, err // set appendonly yes and appendfsync always
	}
	return q, nil
}

// A process that enqueues jobs and runs them. It needs a server, so it does not run here.
func Example() {
	ctx := context.Background()
	q, err := openSynced(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	resize := pawl.Define[string]("image.resize")
	w := worker.New(q, nil)
	worker.Handle(w, resize, func(_ context.Context, job *pawl.Job[string]) error {
		fmt.Println("resize", job.Args)
		return nil
	})
	if _, err := resize.Enqueue(ctx, q, "cat.png"); err != nil {
		fmt.Println(err)
	}
	if err := w.Drain(ctx, pawl.WaitDrained); err != nil {
		fmt.Println(err)
	}
}
