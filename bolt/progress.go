package bolt

import (
	"context"

	"github.com/gopawl/pawl/driver"
)

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
	p := &progress{fn: driver.ProgressOf(ctx), total: max(0, total), step: step}
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
