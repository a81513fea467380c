package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// newBatch returns n jobs of kind "k".
func newBatch(n int) []*pawl.Envelope {
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
	}
	return batch
}

// held brings a job into a state and returns its ID.
func (f *fixture) held(state pawl.State, change ...func(*pawl.Envelope)) pawl.ID {
	f.Helper()
	if state == pawl.Delayed {
		return f.add(append(change, after(time.Hour))...).ID
	}
	if state == pawl.Completed {
		change = append(change, func(e *pawl.Envelope) { e.Retain = time.Hour })
	}
	e := f.add(change...)
	if state == pawl.Ready {
		return e.ID
	}
	switch l := f.lease(e.Queue); state {
	case pawl.Dead:
		f.abandon(l)
	case pawl.Completed:
		f.ack(l)
	}
	return e.ID
}

var states = []pawl.State{pawl.Ready, pawl.Delayed, pawl.Leased, pawl.Dead}

// spoiled tests that one bad job in the middle of a batch makes Enqueue refuse the
// whole batch.
func spoiled(name string, want error, spoil func(*fixture, *pawl.Envelope)) test {
	return newTest("all or nothing, "+name,
		"A batch is stored whole or not at all. A refused batch leaves its envelopes unchanged.", func(f *fixture) {
			batch := newBatch(5)
			batch[0].ID = pawl.NewID(time.Now())
			spoil(f, batch[3])
			unchanged := f.unchanged()
			f.is(f.try(batch...), want, "enqueue")
			unchanged("after the refusal")
		})
}

func batchTests() []test {
	tests := []test{
		spoiled("an invalid job", pawl.ErrInvalid, func(_ *fixture, e *pawl.Envelope) { e.MaxRetries = -1 }),
		spoiled("a large payload", pawl.ErrPayloadTooLarge, func(_ *fixture, e *pawl.Envelope) {
			e.Payload = make([]byte, pawl.DefaultMaxPayload+1)
		}),
	}
	for _, state := range states {
		tests = append(tests, spoiled("an ID that is "+string(state), pawl.ErrConflict, func(f *fixture, e *pawl.Envelope) {
			e.ID = f.held(state)
		}))
	}
	return append(tests, []test{
		newTest("an ID twice in one batch", "A queue never holds two jobs with one ID. A batch that names an ID twice "+
			"conflicts with itself.", func(f *fixture) {
			batch := newBatch(3)
			batch[0].ID = pawl.NewID(time.Now())
			batch[2].ID = batch[0].ID
			f.is(f.try(batch...), pawl.ErrConflict, "enqueue")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs stored")
		}),
		newTest("an ID is free again once its job is gone", "An ID conflicts only with a job that the queue holds. It is "+
			"free again when that job is gone.", func(f *fixture) {
			id := f.add().ID
			f.ack(f.lease())
			f.add(func(e *pawl.Envelope) { e.ID = id })
			equal(f, f.lease().ID, id, "job")
		}),
		newTest("the most jobs", "A batch has at most 10 000 jobs. A larger one returns ErrBatchTooLarge.", func(f *fixture) {
			batch := newBatch(pawl.MaxBatchJobs + 1)
			f.is(f.try(batch...), pawl.ErrBatchTooLarge, "one job too many")
			equal(f, len(f.fetch(1)), 0, "jobs stored")
			f.ok(f.try(batch[:pawl.MaxBatchJobs]...), "the most jobs")
			f.sameJobs(idsOf(f.list(pawl.Filter{State: pawl.Ready})), idsOf(batch[:pawl.MaxBatchJobs]), "jobs stored")
		}),
		newTest("the most bytes", "The payloads of a batch have at most 64 MiB together. A larger batch returns "+
			"ErrBatchTooLarge.", func(f *fixture) {
			const jobs = pawl.MaxBatchBytes / pawl.DefaultMaxPayload
			batch := newBatch(jobs + 1)
			payload := make([]byte, pawl.DefaultMaxPayload)
			for _, e := range batch[:jobs] {
				e.Payload = payload
			}
			batch[jobs].Payload = payload[:1]
			f.is(f.try(batch...), pawl.ErrBatchTooLarge, "a byte too much")
			equal(f, len(f.fetch(1)), 0, "jobs stored")
			batch[jobs].Payload = nil
			f.ok(f.try(batch...), "the most bytes")
			stored := 0
			for n := -1; n != 0; stored += n {
				n = len(f.fetch(jobs + 1)) // fewer at a time, since they are large
			}
			equal(f, stored, jobs+1, "jobs stored")
		}),
		newTest("an envelope twice in one batch",
			"One envelope stands for one job. A batch that has it twice conflicts with itself.", func(f *fixture) {
				e := &pawl.Envelope{Kind: "k"}
				f.is(f.try(e, &pawl.Envelope{Kind: "k"}, e), pawl.ErrConflict, "enqueue")
				equal(f, e.ID.IsZero(), true, "the ID is zero")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs stored")
			}),
	}...)
}
