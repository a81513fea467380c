package worker

import (
	"context"
	"slices"

	"github.com/gopawl/pawl"
)

// HandlerFunc runs one attempt of a job of any kind: what middleware wraps. The
// lease is to read, and for a queue's AckTx. The arguments are not decoded yet; the
// innermost HandlerFunc does that and calls the handler given to [Handle].
type HandlerFunc func(ctx context.Context, l *pawl.Lease) error

// Middleware makes a handler of another, to do something before or after it or in its
// place: tracing, logging, a limit. What the result returns decides about the job as
// if the handler had returned it; see the package comment.
//
// It is called once for each handler, while that is registered. The result runs in
// several goroutines at a time.
type Middleware func(next HandlerFunc) HandlerFunc

// wrap puts middleware around a handler, the first outermost. It returns nil when one
// of it does.
func wrap(middleware []Middleware, h HandlerFunc) HandlerFunc {
	for _, m := range slices.Backward(middleware) {
		if h = m(h); h == nil {
			return nil
		}
	}
	return h
}
