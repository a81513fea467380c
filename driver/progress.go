package driver

import "context"

type progressKey struct{}

// WithProgress returns a context with which a long operation of a queue, such as a check or a
// backup, reports its progress to fn: first with done 0, then every MiB or few thousand rows,
// and, if it succeeds, at the end with done equal to total. Done never decreases and never
// exceeds total, and total does not change. The documentation of each operation names the unit.
//
// The operation calls fn from its own goroutine within a transaction. Fn must be short and must
// not call the queue.
func WithProgress(ctx context.Context, fn func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// ProgressOf returns the function that ctx got from [WithProgress]. Without one it returns a
// function that does nothing.
func ProgressOf(ctx context.Context) func(done, total int64) {
	if fn, _ := ctx.Value(progressKey{}).(func(done, total int64)); fn != nil {
		return fn
	}
	return func(int64, int64) {}
}
