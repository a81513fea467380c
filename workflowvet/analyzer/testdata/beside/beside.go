package beside

import (
	"context"
	"sync"

	"github.com/gopawl/pawl/workflow"
)

var mu sync.Mutex

var Flow = workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
	done := make(chan int)
	go func() { done <- 1 }() // want `a goroutine in a workflow runs beside it in another order each time; begin a branch with workflow.Go`
	<-done                    // want `a receive from a channel keeps the run from being suspended; wait for a branch or a signal`
	done <- 1                 // want `a send on a channel`
	select {                  // want `a select in a workflow takes another case when the run continues; use workflow.Select`
	case <-done:
	default:
	}
	close(done)      // want `a channel in a workflow keeps the run from being suspended`
	for range done { // want `a range over a channel`
	}
	mu.Lock() // want `sync.Mutex.Lock in a workflow can keep the run from being suspended; let branches return their results, or share a value by workflow.Share`
	defer mu.Unlock()
	var wg sync.WaitGroup
	wg.Wait() // want `sync.WaitGroup.Wait in a workflow`
	cached()
	return workflow.Step(r, "s", func(context.Context) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		go func() { done <- 1 }()
		select {
		case n := <-done:
			return n, nil
		}
	})
})

// cached is none of a workflow's business.
func cached() int {
	mu.Lock()
	defer mu.Unlock()
	return 1
}
