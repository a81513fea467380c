package inline_test

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/inline"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// A script runs its jobs one after another, and names those that failed.
func Example() {
	check := pawl.Define[int]("check", pawl.MaxRetries(1))
	ctx := context.Background()

	q := inline.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, check, func(_ context.Context, job *pawl.Job[int]) error {
		fmt.Println("check", job.Args)
		if job.Args == 2 {
			return fmt.Errorf("%d is even", job.Args)
		}
		return nil
	})
	for n := range 3 {
		if _, err := check.Enqueue(ctx, q, n+1); err != nil {
			panic(err)
		}
	}
	for e, err := range q.Jobs(ctx, pawl.Filter{State: pawl.Dead}) {
		if err != nil {
			panic(err)
		}
		fmt.Println("failed:", e.Kind, e.LastError())
	}
	// Output:
	// check 1
	// check 2
	// check 2
	// check 3
	// failed: check 2 is even
}
