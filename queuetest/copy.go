package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// scribble changes everything in an envelope, in place where possible.
func scribble(e *pawl.Envelope) {
	for i := range e.Payload {
		e.Payload[i] ^= 0xff
	}
	for key := range e.Headers {
		e.Headers[key] = "scribble"
	}
	e.Headers["scribble"] = ""
	*e.Policy = pawl.Fixed(time.Hour)
	e.UniqueIn[0] = pawl.Completed
	e.Signature[0] ^= 0xff
	for i := range e.History {
		e.History[i].Error = "scribble"
	}
	if e.Death != nil {
		e.Death.Reason = "scribble"
	}
	*e = pawl.Envelope{ID: e.ID, Kind: "scribble", Queue: "scribble", Attempts: 1000, Seq: 1000}
}

// rich returns a job that uses every field of an envelope.
func (f *fixture) rich() *pawl.Envelope {
	f.Helper()
	policy := pawl.Fixed(time.Second)
	return f.add(func(e *pawl.Envelope) {
		e.Headers, e.Policy = map[string]string{"h": "v"}, &policy
		e.Payload = []byte("a payload of some length")
		if abilitiesOf(f.q)&pawl.LimitKeys != 0 {
			e.Cost = 2
		}
		if abilitiesOf(f.q)&pawl.FairKeys != 0 {
			e.Weight = 3
		}
		e.UniqueKey, e.UniqueIn, e.KeyID, e.Signature = "key", []pawl.State{pawl.Ready}, "signer", []byte("a signature")
	})
}

var copyTests = []test{
	newTest("of what was enqueued",
		"What a caller changes in its envelope after Enqueue changes nothing in the queue.", func(f *fixture) {
			e := f.rich()
			want := copied(f.must(e.ID))
			scribble(e)
			f.same(f.must(want.ID), want, "the job")
			l := f.lease()
			want.State, want.LeasedSince = "", time.Time{}
			f.same(l.Envelope, want, "the lease")
		}),
	newTest("of what was leased",
		"What a handler changes in its job changes nothing in the queue. A settlement uses only the ID and the token.", func(f *fixture) {
			f.rich()
			l := f.lease()
			want := copied(f.must(l.ID))
			token := l.Token
			scribble(l.Envelope)
			l.Length, l.Expires = 0, time.Time{}
			f.same(f.must(want.ID), want, "the job")
			f.release(&pawl.Lease{Envelope: l.Envelope, Token: token})
			want.State, want.LeasedSince = pawl.Ready, time.Time{}
			f.same(f.must(want.ID), want, "the job after release")
		}),
	newTest("of what was inspected", "What a reader changes in the jobs that it received changes nothing in the queue.", func(f *fixture) {
		id := f.rich().ID
		f.nack(f.lease(), 0)
		f.abandon(f.lease())
		want := copied(f.must(id))
		scribble(f.must(id))
		f.same(f.must(id), want, "after a change of what Job gave")
		for _, e := range f.list(pawl.Filter{State: pawl.Dead}) {
			scribble(e)
		}
		f.same(f.must(id), want, "after a change of what Jobs gave")
	}),
	newTest("each caller has its own", "Two leases of one job share no memory.", func(f *fixture) {
		f.rich()
		old := f.lease()
		want := copied(old.Envelope)
		f.release(old)
		l := f.lease()
		scribble(old.Envelope)
		f.same(l.Envelope, want, "the second lease")
	}),
	newTest("the caller's memory", "The queue never writes to the memory of a payload that it was given.", func(f *fixture) {
		const size = 2048
		buffer := make([]byte, 4*size)
		for i := range buffer {
			buffer[i] = byte(i % 251)
		}
		batch := newBatch(4)
		for i, e := range batch {
			e.Payload = buffer[i*size : (i+1)*size]
		}
		f.enqueue(batch...)
		for i := range buffer {
			if buffer[i] != byte(i%251) {
				f.Fatalf("byte %d of the caller's buffer was changed", i)
			}
		}
	}),
}
