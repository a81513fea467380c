package worker

import (
	"context"
	"slices"

	"github.com/gopawl/pawl"
)

// HandlerFunc runs one attempt of a job of any kind. Middleware wraps it. The lease
// is for a queue's AckTx; do not change it. The arguments are not decoded yet; the
// innermost HandlerFunc does that and calls the handler given to [Handle].
type HandlerFunc func(ctx context.Context, l *pawl.Lease) error

// Middleware wraps a handler in another one, which does something before it, after it, or in its
// place, such as tracing or logging. The worker handles the result of the outer handler as that
// of any handler; see the package comment.
//
// It is called once for each handler, when the handler is registered. The outer handler runs in
// several goroutines at a time.
type Middleware func(next HandlerFunc) HandlerFunc

// wrap puts middleware around a handler, the first outermost. It returns nil if any middleware
// does.
func wrap(middleware []Middleware, h HandlerFunc) HandlerFunc {
	for _, m := range slices.Backward(middleware) {
		if h = m(h); h == nil {
			return nil
		}
	}
	return h
}
