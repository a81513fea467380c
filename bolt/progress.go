package bolt

import "context"

type progressKey struct{}

// WithProgress returns a context with which Check, Backup, WriteBackup, Compact and Salvage
// report their progress to fn: first with done 0, then every MiB or few thousand rows, and, if
// they succeed, at the end with done equal to total. Done never decreases and never exceeds
// total, and total does not change. The documentation of each operation names the unit.
//
// The operation calls fn from its own goroutine within a transaction. Fn must be short and must
// not call the queue.
func WithProgress(ctx context.Context, fn func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// ProgressOf returns the function that ctx got from [WithProgress], for code that passes
// progress on. Without one it returns a function that does nothing.
func ProgressOf(ctx context.Context) func(done, total int64) {
	if fn, _ := ctx.Value(progressKey{}).(func(done, total int64)); fn != nil {
		return fn
	}
	return func(int64, int64) {}
}

// progressStep is how many bytes are processed between two calls.
const progressStep = 1 << 20

// progressRows is how many rows are processed between two calls.
const progressRows = 4096

// progress reports how far an operation is. A nil progress reports nothing.
type progress struct {
	fn                func(done, total int64)
	done, total, step int64
	reported          int64 // the last reported value
}

// beginProgress reports that none of total bytes are done.
func beginProgress(ctx context.Context, total int64) *progress {
	return beginSteps(ctx, total, progressStep)
}

// beginSteps is beginProgress with another step size.
func beginSteps(ctx context.Context, total, step int64) *progress {
	fn, _ := ctx.Value(progressKey{}).(func(done, total int64))
	if fn == nil {
		return nil
	}
	p := &progress{fn: fn, total: max(0, total), step: step}
	p.report(0)
	return p
}

// add counts n more. It does not report more than the total, which may be an estimate.
func (p *progress) add(n int64) {
	if p == nil {
		return
	}
	if p.done = min(p.done+n, p.total); p.done >= p.reported+p.step && p.done < p.total {
		p.report(p.done)
	}
}

// end reports that everything is done.
func (p *progress) end() {
	if p != nil {
		p.report(p.total)
	}
}

func (p *progress) report(done int64) {
	p.reported = done
	callOut(func() { p.fn(done, p.total) })
}

// outside marks a panic of code outside the queue.
type outside struct{ panicked any }

// callOut runs the caller's code within a transaction, so that its panics are not taken for
// damage to the file.
func callOut(fn func()) {
	returned := false
	defer func() {
		if !returned {
			if p := recover(); p != nil {
				panic(outside{p})
			}
		}
	}()
	fn()
	returned = true
}

// passOn is deferred where nothing else recovers a panic marked by callOut.
func passOn() {
	switch p := recover().(type) {
	case nil:
	case outside:
		panic(p.panicked)
	default:
		panic(p)
	}
}
