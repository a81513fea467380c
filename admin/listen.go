package admin

import (
	"context"
	"iter"
)

// listen iterates over the events of the queue that happen after the iteration begins. When the
// queue closes or is poisoned, it yields the buffered events and ends with that error.
func (a *broadcaster) listen(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := a.subscribe()
		defer r.unsubscribe()
		taken := make([]Event, handful) // limits what is held during yield
		for {
			var ended error
			select {
			case <-r.ready:
			case <-a.q.Done():
				ended = a.q.Err()
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
