package bolt

import "context"

type progressKey struct{}

// WithProgress returns a context with which Check, Backup, WriteBackup, Compact and Salvage
// tell fn how far they are: first with done 0, then every MiB or some thousand rows, and at
// the end of one that succeeds with done equal to total. Done never falls and is never more
// than total, which does not change. The unit is that of the operation, see there.
//
// Fn is called from the goroutine of the operation, within a transaction: it is short, and
// does not call the queue.
func WithProgress(ctx context.Context, fn func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// ProgressOf is the function that ctx was given by [WithProgress], for who passes progress
// on; one that does nothing without one.
func ProgressOf(ctx context.Context) func(done, total int64) {
	if fn, _ := ctx.Value(progressKey{}).(func(done, total int64)); fn != nil {
		return fn
	}
	return func(int64, int64) {}
}

// progressStep is how much of a total of bytes is done between two calls, in bytes.
const progressStep = 1 << 20

// progressRows is the same for a total of rows.
const progressRows = 4096

// progress tells how far an operation is. Nil tells nobody.
type progress struct {
	fn                func(done, total int64)
	done, total, step int64
	told              int64 // how far it was when it was told last
}

// beginProgress tells that nothing is done yet of a total of bytes.
func beginProgress(ctx context.Context, total int64) *progress {
	return beginSteps(ctx, total, progressStep)
}

// beginSteps is beginProgress for what is told in steps of another size.
func beginSteps(ctx context.Context, total, step int64) *progress {
	fn, _ := ctx.Value(progressKey{}).(func(done, total int64))
	if fn == nil {
		return nil
	}
	p := &progress{fn: fn, total: max(0, total), step: step}
	p.tell(0)
	return p
}

// add counts n more. What exceeds the total, which may be an estimate, is not told.
func (p *progress) add(n int64) {
	if p == nil {
		return
	}
	if p.done = min(p.done+n, p.total); p.done >= p.told+p.step && p.done < p.total {
		p.tell(p.done)
	}
}

// end tells that all is done.
func (p *progress) end() {
	if p != nil {
		p.tell(p.total)
	}
}

func (p *progress) tell(done int64) {
	p.told = done
	callOut(func() { p.fn(done, p.total) })
}

// outside is a panic of code that is not the queue's.
type outside struct{ panicked any }

// callOut runs code of the caller's within a transaction. What panics there is not taken for
// a damage of the file.
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

// passOn is deferred where nothing else recovers what callOut has marked.
func passOn() {
	switch p := recover().(type) {
	case nil:
	case outside:
		panic(p.panicked)
	default:
		panic(p)
	}
}
