package servicebus_test

import (
	"context"
	"fmt"
	"os"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/servicebus"
	"github.com/gopawl/pawl/worker"
)

// A process that enqueues jobs and runs them. It needs a namespace with the Service Bus queue pawl/default/image.resize,
// so it does not run here.
func Example() {
	ctx := context.Background()
	q, err := servicebus.Open(ctx, os.Getenv("SERVICEBUS_CONNECTION_STRING"), nil)
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

// The Service Bus queues have to exist. Each kind of each queue has one.
func ExampleEntityName() {
	fmt.Println(servicebus.EntityName("pawl", "default", "image.resize"))
	fmt.Println(servicebus.EntityName("pawl", "EU/night", "image.resize"))
	// Output:
	// pawl/default/image.resize
	// pawl/_45_55_2Fnight/image.resize
}
