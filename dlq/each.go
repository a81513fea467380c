package dlq

import (
	"context"
	"errors"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// each calls do for every job in order, up to width at a time, and returns how many are done. It
// continues after an error, unless the queue has stopped or ctx has ended. The returned error is
// that of the first failed job in the order of ids, whatever the order of completion.
func each(ctx context.Context, ids []pawl.ID, width int, do func(pawl.ID) (done bool, err error)) (done int, err error) {
	var mu sync.Mutex // guards the following and the results
	next, failed, first, stopped := 0, 0, len(ids), false
	work := func() {
		mu.Lock()
		for !stopped && next < len(ids) {
			n := next
			next++
			mu.Unlock()
			ok, failure := false, ctx.Err()
			if failure == nil {
				ok, failure = do(ids[n])
			} else {
				failure = driver.NotAccepted(ctx)
			}
			mu.Lock()
			if ok {
				done++
			}
			if failure == nil {
				continue
			}
			failed++
			stopped = stopped || ctx.Err() != nil || errors.Is(failure, pawl.ErrClosed) || errors.Is(failure, pawl.ErrPoisoned)
			if n < first {
				first, err = n, failure
			}
		}
		mu.Unlock()
	}
	if width <= 1 {
		work() // a panic of the sink reaches the caller
	} else {
		var workers sync.WaitGroup
		for range min(width, len(ids)) {
			workers.Go(work)
		}
		workers.Wait()
	}
	if stopped {
		failed = 1 // the others were not tried
	}
	return done, andMore(err, failed)
}
