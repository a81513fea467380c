package admin

import (
	"context"
	"iter"

	"github.com/gopawl/pawl"
)

// listen iterates over the events of the queue. It hears what happens from the beginning of
// the iteration on. When the queue closes, or is poisoned, it tells what it has heard before
// it ends with that error.
func (a *broadcaster) listen(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := a.subscribe()
		defer r.unsubscribe()
		taken := make([]Event, handful) // and no more, for as long as this waits in yield
		for {
			var ended error
			select {
			case <-r.ready:
			case <-a.q.Done():
				if _, ended = a.q.Extend(ctx); ended == nil { // of no lease: it tells why
					ended = pawl.ErrClosed
				}
			case <-ctx.Done():
			}
			for n := r.take(taken); n > 0 && ctx.Err() == nil; n = r.take(taken) {
				for _, e := range taken[:n] {
					if ctx.Err() == nil && !yield(e, nil) {
						return
					}
				}
			}
			if ctx.Err() != nil {
				ended = ctx.Err()
			}
			if ended != nil {
				yield(Event{}, ended)
				return
			}
		}
	}
}
