package queuetest

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// keyring returns a keyring that signs and verifies.
func (f *fixture) keyring() *pawl.Keyring {
	f.Helper()
	k, err := pawl.NewKeyring("2024", map[string][]byte{"2024": bytes.Repeat([]byte("s"), 32), "old": bytes.Repeat([]byte("o"), 40)})
	f.ok(err, "make a keyring")
	return k
}

// signed enqueues a signed job.
func (f *fixture) signed(k *pawl.Keyring, change ...func(*pawl.Envelope)) *pawl.Envelope {
	f.Helper()
	e := &pawl.Envelope{Kind: "k", MaxRetries: 3, Payload: []byte("payload")}
	for _, fn := range change {
		fn(e)
	}
	f.ok(f.trySigned(k, e), "enqueue")
	return e
}

// trySigned enqueues jobs through a keyring that signs them.
func (f *fixture) trySigned(k *pawl.Keyring, jobs ...*pawl.Envelope) error {
	_, err := f.put(k.Signing(f.q), jobs...)
	return err
}

// verifies requires that a job has its signature and that the signature is valid.
func (f *fixture) verifies(k *pawl.Keyring, e *pawl.Envelope, when string) {
	f.Helper()
	f.ok(k.Verify(e), "verify the job "+when)
}

// surviving signs a job, does something to it, and verifies the job in the queue
// afterwards.
func surviving(name string, do func(*fixture, *pawl.Lease), change ...func(*pawl.Envelope)) test {
	return newTest("after "+name, "What a signature covers never changes, whatever happens to the job.", func(f *fixture) {
		k := f.keyring()
		e := f.signed(k, append(change, kept(time.Hour))...)
		f.verifies(k, f.must(e.ID), "that is stored")
		l := f.lease(e.Queue)
		f.verifies(k, l.Envelope, "that is leased")
		do(f, l)
		f.verifies(k, f.must(e.ID), "after "+name)
		f.pass(time.Hour - 1)
		for _, l := range f.fetch(1, e.Queue) {
			f.verifies(k, l.Envelope, "that is leased again after "+name)
		}
	})
}

// covered signs a job of some form and verifies its lease, before and after a restart
// if the queue survives one.
func covered(name string, change ...func(*pawl.Envelope)) test {
	return newTest("of "+name, "The queue returns what a signature covers bit for bit as it was signed.", func(f *fixture) {
		k := f.keyring()
		e := f.signed(k, change...)
		l := f.lease(e.Queue)
		f.verifies(k, l.Envelope, "that is leased")
		f.release(l)
		if f.config.Persists {
			f.restart()
			f.verifies(k, f.lease(e.Queue).Envelope, "that is leased after a restart")
		}
	})
}

// rejected abandons a job before it ran, after some failed attempts.
func rejected(reason pawl.Reason, name string, failures int) test {
	return newTest("rejected "+name,
		"Abandon with ReasonSignature or ReasonPayload counts no attempt, because nothing ran. The history has the cause "+
			"under the number of the attempt that would have come next.", func(f *fixture) {
			id := f.add().ID
			for range failures {
				f.nack(f.lease(), 0)
			}
			f.pass(time.Second)
			f.expire(f.lease())
			want := f.must(id)
			l := f.lease()
			f.pass(time.Second)
			f.ok(f.q.Settle(f.Context(), l.Abandon(reason, errors.New("bad"))), "abandon")
			now := time.Now()
			want.State, want.Crashes, want.Death = pawl.Dead, 0, &pawl.Death{Reason: reason, At: now}
			want.Failures++
			want.History = append(want.History, pawl.Failure{Attempt: failures + 1, At: now, Error: "bad"})
			f.same(f.must(id), want, "the job")
			f.retry(id, true)
			equal(f, f.lease().Attempt(), failures+1, "the attempt of a retry that keeps the attempts")
		})
}

func signatureTests() (tests []test) {
	for _, v := range verbs {
		tests = append(tests, surviving(v.name, func(f *fixture, l *pawl.Lease) { f.end(v, l) }))
	}
	create := func(at time.Time) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Created = at } }
	return append(tests,
		surviving("an expiry", (*fixture).expire),
		surviving("a restart", func(f *fixture, _ *pawl.Lease) { f.restart() }).needing(alone),
		surviving("many failures", func(f *fixture, l *pawl.Lease) {
			for range 5 {
				f.nack(l, time.Second)
				f.pass(time.Second)
				l = f.lease()
			}
			f.release(l)
		}, func(e *pawl.Envelope) { e.MaxRetries = 9 }),
		surviving("a retry by hand", func(f *fixture, l *pawl.Lease) {
			f.abandon(l)
			f.retry(l.ID, false)
		}),
		surviving("a rejection and a retry by hand", func(f *fixture, l *pawl.Lease) {
			f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonSignature, errBoom)), "abandon")
			f.retry(l.ID, true)
		}),
		surviving("a cancel", func(f *fixture, l *pawl.Lease) {
			f.release(l)
			f.cancel(l.ID)
		}),
		surviving("a restart as a dead job", func(f *fixture, l *pawl.Lease) {
			f.abandon(l)
			f.restart()
			f.retry(l.ID, false)
		}).needing(persists),
		covered("the default queue"),
		covered("another queue", onQueue("q")),
		covered("a job from another queue", func(e *pawl.Envelope) { e.Queue, e.Origin = "q", "where it came from" }),
		covered("an idempotency key", effect("e")),
		covered("the longest names", onQueue(strings.Repeat("q", 255)), of(strings.Repeat("k", 255)), effect(strings.Repeat("e", 255))).unless(shortNames),
		covered("names that are no text", onQueue("\xff\x01"), of("\x80"), effect("\x00\xff")),
		covered("no payload", func(e *pawl.Envelope) { e.Payload = nil }),
		covered("an empty payload", func(e *pawl.Envelope) { e.Payload = []byte{} }),
		covered("a large payload", func(e *pawl.Envelope) { e.Payload = bytes.Repeat([]byte("pay"), 100_000) }),
		covered("a time with nanoseconds", create(time.Date(2024, 2, 29, 23, 59, 59, 999999999, time.UTC))),
		covered("a time with a monotonic part", func(e *pawl.Envelope) { e.Created = time.Now() }),
		covered("a time in another zone", create(time.Date(2024, 1, 1, 0, 0, 0, 1, time.FixedZone("", 5*3600+1800)))),
		covered("a time before 1970", create(time.Date(1912, 6, 23, 0, 0, 0, 7, time.UTC))),
		covered("a time to come", create(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))),
		newTest("by whichever key",
			"The queue keeps the key ID and any signature, also one that it cannot verify.", func(f *fixture) {
				for _, e := range []*pawl.Envelope{
					{KeyID: strings.Repeat("i", 255), Signature: bytes.Repeat([]byte{0xff}, 64)},
					{KeyID: "unknown", Signature: []byte{0}},
					{KeyID: "no signature"},
					{Signature: []byte("no key")},
					{},
				} {
					e.Kind = "k"
					want := copied(e)
					f.ok(f.try(e), "enqueue")
					l := f.lease()
					equal(f, l.KeyID, want.KeyID, "key ID")
					equal(f, string(l.Signature), string(want.Signature), "signature")
					f.nack(l, 0)
					l = f.lease()
					equal(f, l.KeyID, want.KeyID, "key ID after a failure")
					equal(f, string(l.Signature), string(want.Signature), "signature after a failure")
					f.ack(l)
				}
			}),
		newTest("of a batch",
			"Each job of a batch has its own signature. A refused batch leaves the envelopes unchanged.", func(f *fixture) {
				k := f.keyring()
				batch := newBatch(20)
				for i, e := range batch {
					e.Payload = []byte{byte(i)}
				}
				batch[7].MaxRetries = -1
				f.is(f.trySigned(k, batch...), pawl.ErrInvalid, "enqueue of a bad batch")
				batch[7].MaxRetries = 0
				taken := f.add().ID
				batch[8].ID = taken
				f.is(f.trySigned(k, batch...), pawl.ErrConflict, "enqueue of a batch with an ID that is taken")
				equal(f, len(batch[9].Signature), 0, "bytes of the signature of a job that was refused")
				batch[8].ID = pawl.ID{}
				f.ack(f.lease())
				f.ok(f.trySigned(k, batch...), "enqueue")
				for _, l := range f.leases(20) {
					f.verifies(k, l.Envelope, "of a batch")
				}
			}).needing(batches),
		newTest("the caller's bytes",
			"A caller that changes the bytes of a signature, its own or one that it received, changes nothing in the queue.", func(f *fixture) {
				k := f.keyring()
				e := &pawl.Envelope{Kind: "k", Payload: []byte("payload")}
				f.ok(k.Sign(e), "sign")
				f.enqueue(e)
				e.Signature[0]++
				l := f.lease()
				f.verifies(k, l.Envelope, "that is leased")
				l.Signature[0]++
				f.must(l.ID).Signature[0]++
				f.verifies(k, f.must(l.ID), "that is stored")
			}),
		rejected(pawl.ReasonSignature, "at the first run", 0),
		rejected(pawl.ReasonSignature, "after two failures", 2),
		rejected(pawl.ReasonPayload, "for its payload", 0),
		rejected(pawl.ReasonPayload, "for its payload after two failures", 2),
	)
}
