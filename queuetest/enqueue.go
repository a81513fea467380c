package queuetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

var enqueueTests = []test{
	newTest("fills in the job",
		"Enqueue fills in what the envelopes leave open, in the jobs that it stores: ID, Origin, Created, Queue, Seq, and "+
			"NotBefore.", func(f *fixture) {
			done, err := f.q.Enqueue(f.Context(), &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", Queue: "q", Delay: time.Minute})
			f.ok(err, "enqueue")
			now := time.Now()
			equal(f, done[0].ID.IsZero(), false, "the ID is zero")
			first, second := f.must(done[0].ID), f.must(done[1].ID)
			equal(f, first.Seq > 0, true, "it has a sequence")
			equal(f, first.Queue, pawl.DefaultQueue, "queue")
			equal(f, first.Origin, pawl.DefaultQueue, "origin")
			equal(f, second.Origin, "q", "origin of the second")
			f.sameTime(first.Created, now, "created")
			f.sameTime(first.NotBefore, now, "not before")
			f.sameTime(second.NotBefore, now.Add(time.Minute), "not before of the second")
			equal(f, second.Delay, 0, "delay, which is in NotBefore now")
		}).needing(batches),
	newTest("leaves its arguments unchanged",
		"An enqueue leaves its arguments unchanged, whatever becomes of the jobs. It returns the ID of each job, and "+
			"whether another job has its unique key.", func(f *fixture) {
			policy, past := pawl.Fixed(time.Second), time.Now().Add(-time.Hour)
			full := &pawl.Envelope{
				Kind: "k", Payload: []byte("payload"), Headers: map[string]string{"h": "v"}, Policy: &policy, NotBefore: past,
				Attempts: 3, Crashes: 2, Failures: 1, Death: &pawl.Death{Reason: pawl.ReasonPoison}, State: pawl.Dead,
				History: []pawl.Failure{{Attempt: 1}}, Cancelled: true, LeasedSince: past, BackoffSince: past, Completed: past,
			}
			batch := []*pawl.Envelope{full, {Kind: "k", Delay: time.Hour, UniqueKey: "u"}, {Kind: "k", UniqueKey: "u"},
				{Kind: "k", UniqueKey: "u", OnConflict: pawl.Replace, Payload: []byte("new")}, {Kind: "k", Deadline: past}}
			leftAlone := f.arguments(batch...)
			done, err := f.q.Enqueue(f.Context(), batch...)
			f.ok(err, "enqueue")
			leftAlone("the enqueue")
			for i := range batch {
				equal(f, done[i].ID.IsZero(), false, "the ID is zero")
				equal(f, done[i].Existing, i == 2, "Existing")
			}
			equal(f, done[2].ID, done[1].ID, "the ID of the job that has the key")
			equal(f, done[3].ID, done[1].ID, "the ID of the job that was replaced")
			equal(f, string(f.must(done[3].ID).Payload), "new", "payload")
		}),
	newTest("sequence grows", "Seq is the enqueue sequence. It grows within a batch and from batch to batch.", func(f *fixture) {
		last := uint64(0)
		for range 3 {
			batch := newBatch(3)
			f.enqueue(batch...)
			for _, e := range batch {
				seq := f.must(e.ID).Seq
				if seq <= last {
					f.Fatalf("sequence %d came after %d", seq, last)
				}
				last = seq
			}
		}
	}),
	newTest("IDs are UUIDs of version 7", "An ID is a UUIDv7 and names one job.", func(f *fixture) {
		seen := make(map[pawl.ID]bool)
		batch := newBatch(100)
		f.enqueue(batch...)
		for _, e := range batch {
			if e.ID[6]>>4 != 7 || e.ID[8]>>6 != 2 {
				f.Fatalf("%s is no UUIDv7", e.ID)
			}
			equal(f, seen[e.ID], false, "an ID was given twice")
			seen[e.ID] = true
		}
	}),
	newTest("stores what was given", "Fetch and inspection return a job as it was enqueued.", func(f *fixture) {
		policy := pawl.Exponential(time.Second, 2).Cap(time.Minute).Jitter(0.5)
		e := f.add(func(e *pawl.Envelope) {
			e.Payload = []byte("\x00payload\xff")
			e.Headers = map[string]string{"trace": "1", "empty": ""}
			e.Priority, e.Timeout, e.MaxRetries, e.Policy = -3, time.Hour, 9, &policy
		})
		f.same(f.lease().Envelope, e, "the lease")
		e.State, e.LeasedSince = pawl.Leased, time.Now()
		f.same(f.must(e.ID), e, "inspection")
	}),
	newTest("a forwarded job keeps its identity",
		"ID, origin, and creation never change during the life of a job, so a forwarded job keeps them. The counts of the "+
			"queue start at 0.", func(f *fixture) {
			id, created := pawl.NewID(time.Now()), time.Unix(1_000_000, 5)
			e := &pawl.Envelope{
				ID: id, Origin: "elsewhere", Created: created, Kind: "k", Queue: "here",
				Attempts: 3, Crashes: 2, Failures: 1, Death: &pawl.Death{Reason: pawl.ReasonExhausted},
				State: pawl.Dead, LeasedSince: created, History: []pawl.Failure{{Attempt: 1}},
			}
			f.ok(f.try(e), "enqueue")
			want := &pawl.Envelope{
				ID: id, Origin: "elsewhere", Created: created, Kind: "k", Queue: "here",
				Seq: e.Seq, NotBefore: time.Now(),
			}
			f.same(e, want, "the envelope given")
			want.State = pawl.Ready
			f.same(f.must(id), want, "inspection")
			want.State = ""
			f.same(f.lease("here").Envelope, want, "the lease")
		}),
	newTest("ready at once", "A new job without a schedule is ready when Enqueue returns, and has 0 attempts.", func(f *fixture) {
		l := f.add()
		leased := f.lease()
		equal(f, leased.ID, l.ID, "job")
		equal(f, leased.Attempts, 0, "attempts")
		equal(f, leased.Attempt(), 1, "the attempt that comes")
	}),
	newTest("no job", "Enqueue of an empty batch does nothing and returns no error.", func(f *fixture) { f.ok(f.try(), "enqueue nothing") }),
	newTest("payloads come back equal", "A payload of any size stays unchanged through every transition.", func(f *fixture) {
		for _, size := range []int{0, 1, 1023, 1024, 1025, 1 << 16, pawl.DefaultMaxPayload} {
			payload := bytes.Repeat([]byte("0123456789abcde\xff"), size/16+1)[:size]
			id := f.add(func(e *pawl.Envelope) { e.Payload = bytes.Clone(payload) }).ID
			check := func(got []byte, when string) {
				f.Helper()
				if !bytes.Equal(got, payload) {
					f.Fatalf("a payload of %d bytes is %s %s", size, brief(got), when)
				}
			}
			l := f.lease()
			check(l.Payload, "when it was new")
			f.nack(l, 0)
			l = f.lease()
			check(l.Payload, "after a failure")
			f.snooze(l, time.Second)
			f.due(time.Second)
			l = f.lease()
			check(l.Payload, "after a delay")
			f.abandon(l)
			check(f.must(id).Payload, "as a dead job")
			f.retry(id, false)
			l = f.lease()
			check(l.Payload, "after a retry")
			f.ack(l)
		}
	}),
	newTest("takes what is just within the limits",
		"The limits of an envelope are inclusive. Names may have any bytes except NUL.", func(f *fixture) {
			headers := make(map[string]string)
			for i := range pawl.MaxHeaders {
				headers[fmt.Sprint(i)] = ""
			}
			for _, change := range []func(*pawl.Envelope){
				func(e *pawl.Envelope) { e.Kind = strings.Repeat("k", f.maxName()) },
				func(e *pawl.Envelope) { e.Kind = "\xff\xfe\x01 /%s" },
				func(e *pawl.Envelope) { e.MaxRetries = 0 },
				func(e *pawl.Envelope) { e.MaxRetries = pawl.MaxMaxRetries },
				func(e *pawl.Envelope) { e.Priority = -128 },
				func(e *pawl.Envelope) { e.Priority = 127 },
				func(e *pawl.Envelope) { e.Timeout = 1<<63 - 1 },
				func(e *pawl.Envelope) { e.Headers = headers },
				header("h", strings.Repeat("v", pawl.MaxHeaderBytes-1)),
				func(e *pawl.Envelope) { e.Created = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC) },
			} {
				e := f.add(change)
				l := f.lease()
				f.same(l.Envelope, e, "the lease")
				f.ack(l)
			}
		}),
}

// newBatch returns n jobs of kind "k". The function change may modify each.
func newBatch(n int, change ...func(*pawl.Envelope)) []*pawl.Envelope {
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
		for _, fn := range change {
			fn(batch[i])
		}
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
		change = append(change, kept(time.Hour))
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
			f.pass(f.config.Reduced.IDs)
			f.add(func(e *pawl.Envelope) { e.ID = id })
			equal(f, f.lease().ID, id, "job")
		}),
		newTest("the most jobs", "A batch has at most 10 000 jobs. A larger one returns ErrBatchTooLarge.", func(f *fixture) {
			batch := newBatch(pawl.MaxBatchJobs + 1)
			f.is(f.try(batch...), pawl.ErrBatchTooLarge, "one job too many")
			equal(f, len(f.fetch(1)), 0, "jobs stored")
			f.ok(f.try(batch[:pawl.MaxBatchJobs]...), "the most jobs")
			f.sameJobs(idsOf(f.list(pawl.Filter{State: pawl.Ready})), idsOf(batch[:pawl.MaxBatchJobs]), "jobs stored")
		}).needing(batches),
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
		}).needing(batches),
		newTest("an envelope twice in one batch",
			"One envelope stands for one job. A batch that has it twice conflicts with itself.", func(f *fixture) {
				e := &pawl.Envelope{Kind: "k"}
				f.is(f.try(e, &pawl.Envelope{Kind: "k"}, e), pawl.ErrConflict, "enqueue")
				equal(f, e.ID.IsZero(), true, "the ID is zero")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs stored")
			}),
	}...)
}
