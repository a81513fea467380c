package otel_test

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/otel"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// traced makes what an app traces, with the global providers.
func traced(q *bolt.Queue) (pawl.Enqueuer, *worker.Worker, *workflow.Engine, error) {
	o, err := otel.New(nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if _, err := o.Observe(q); err != nil { // the state of the queue, as gauges
		return nil, nil, nil, err
	}
	jobs := o.Enqueuer(q) // enqueue through it
	w := worker.New(q, &worker.Options{Middleware: []worker.Middleware{o.Handlers}})
	e := workflow.Open(q, &workflow.Options{Middleware: []workflow.Middleware{o.Steps}, Headers: o.Headers})
	return jobs, w, e, nil
}

func ExampleTracing_Headers() {
	o, err := otel.New(nil)
	fmt.Println(len(o.Headers(context.Background())), err) // no span, no headers
	// Output: 0 <nil>
}

var _ = traced
