package jetstream_test

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/jetstream"
	"github.com/gopawl/pawl/worker"
)

// A process that enqueues jobs and runs them. It needs a server, so it does not run here.
func Example() {
	ctx := context.Background()
	q, err := jetstream.Open(ctx, "nats://127.0.0.1:4222", nil)
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
