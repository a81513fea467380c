package dlq

import (
	"context"
	"errors"
	"sync"

	"github.com/gopawl/pawl"
)

// each calls do with every letter, in their order and up to width at a time, and
// returns how many it did. A letter that fails keeps none of the others back, except
// where a queue or the context is at its end: then those that were not begun are left.
// The error is that of the first letter, in their order, that failed, however the
// calls overlapped.
func each(ctx context.Context, ids []pawl.ID, width int, do func(pawl.ID) (done bool, err error)) (done int, err error) {
	var (
		mu     sync.Mutex // guards what follows
		next   int
		failed int
		first  = len(ids) // the number of the letter whose error is err
		end    bool
	)
	take := func() (n int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if end || next == len(ids) {
			return 0, false
		}
		next++
		return next - 1, true
	}
	note := func(n int, ok bool, failure error) {
		mu.Lock()
		defer mu.Unlock()
		if ok {
			done++
		}
		if failure == nil {
			return
		}
		failed++
		end = end || ctx.Err() != nil || errors.Is(failure, pawl.ErrClosed) || errors.Is(failure, pawl.ErrPoisoned)
		if n < first {
			first, err = n, failure
		}
	}
	work := func() {
		for n, ok := take(); ok; n, ok = take() {
			if ctx.Err() != nil {
				note(n, false, pawl.NotAccepted(ctx))
				return
			}
			did, failure := do(ids[n])
			note(n, did, failure)
		}
	}
	if width <= 1 {
		work()
	} else {
		var all sync.WaitGroup
		for range min(width, len(ids)) {
			all.Go(work)
		}
		all.Wait()
	}
	if end {
		failed = 1 // the others were not tried
	}
	return done, andMore(err, failed)
}
