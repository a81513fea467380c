package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
)

// operation is what an operator does to one job.
type operation struct {
	name string // for cases
	do   func(ctx context.Context, f *fixture, id pawl.ID) error
}

var (
	cancelling = operation{"Cancel", func(ctx context.Context, f *fixture, id pawl.ID) error { return f.canceller().Cancel(ctx, id) }}
	retrying   = operation{"Retry", func(ctx context.Context, f *fixture, id pawl.ID) error { return f.retrier().Retry(ctx, id, false) }}
	deleting   = operation{"Delete", func(ctx context.Context, f *fixture, id pawl.ID) error { return f.deleter().Delete(ctx, id) }}
	runningNow = operation{"RunNow", func(ctx context.Context, f *fixture, id pawl.ID) error { return f.nowRunner().RunNow(ctx, id) }}
)

// unknownJob is the case of a job that the queue does not hold.
func (o operation) unknownJob(name string) test {
	return newTest(name, o.name+" of a job that the queue does not hold returns ErrNotFound.", func(f *fixture) {
		f.is(o.do(f.Context(), f, pawl.NewID(time.Now())), pawl.ErrNotFound, "a job that never was")
		id := f.add().ID
		f.ack(f.lease())
		f.is(o.do(f.Context(), f, id), pawl.ErrNotFound, "a job that is done")
	})
}

// wrongState is the case of a job in a state that the operation refuses.
func (o operation) wrongState(name, rule string, state pawl.State) test {
	return newTest(name+string(state), rule, func(f *fixture) {
		id := f.held(state)
		unchanged := f.unchanged()
		f.is(o.do(f.Context(), f, id), pawl.ErrConflict, o.name)
		unchanged("after the refusal")
	})
}
