package dlq_test

import (
	"context"
	"fmt"
	"log"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type Order struct{ Number int }

var Ship = pawl.Define[Order]("order.ship", pawl.MaxRetries(0))

// Letters are forwarded to a queue of their own, which a worker of its own looks after:
// the kind is the same, the handler is another.
func ExampleForward() {
	ctx := context.Background()
	quiet := hclog.NewNullLogger()
	q := memory.New(&memory.Options{Logger: quiet})
	defer q.Close()
	_, _ = Ship.Enqueue(ctx, q, Order{Number: 7})
	w := worker.New(q, &worker.Options{Logger: quiet})
	worker.Handle(w, Ship, func(context.Context, *pawl.Job[Order]) error { return fmt.Errorf("no stock") })
	_ = w.ProcessOnce(ctx)

	n, err := dlq.Forward(ctx, q, dlq.ToQueue(q, dlq.FailedJobs), nil, pawl.Filter{Kind: Ship.Name()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("forwarded", n)

	clerk := worker.New(q, &worker.Options{Queues: []string{dlq.FailedJobs}, Logger: quiet})
	worker.Handle(clerk, Ship, func(_ context.Context, job *pawl.Job[Order]) error {
		dead, _ := dlq.SourceOf(job.Envelope)
		fmt.Println("order", job.Args.Number, "died in", dead.Queue, "after", dead.Attempts, "attempt:", dead.History[0].Error)
		return nil
	})
	_ = clerk.ProcessOnce(ctx)
	// Output:
	// forwarded 1
	// order 7 died in default after 1 attempt: no stock
}
