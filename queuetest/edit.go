package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Editor is a queue that can replace the payload of a job.
type Editor interface {
	// Edit replaces the payload of a job that waits or is dead, if it meets the condition. A dead job
	// becomes ready.
	Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error
}

func editTests() (tests []test) {
	edited := []byte("\xa6edited")
	for _, state := range states {
		tests = append(tests, newTest("of a job that is "+string(state),
			"Edit replaces the payload of a ready, delayed, or dead job, and a header names the old payload. A dead job "+
				"becomes ready, as by Retry; nothing else changes. Any other job gives ErrNotEligible and stays unchanged.", func(f *fixture) {
				q := able[Editor](f)
				id := f.held(state, priority(3))
				want := f.must(id)
				unchanged := f.unchanged()
				f.is(q.Edit(f.Context(), id, edited, when(func(*pawl.Envelope) bool { return false })), pawl.ErrNotEligible, "an edit whose condition does not hold")
				unchanged("after the refusal")
				err := q.Edit(f.Context(), id, edited, driver.PayloadIs{Sum: driver.SumOf(want.Payload)})
				if state == pawl.Leased || state == pawl.Completed {
					f.is(err, pawl.ErrNotEligible, "an edit")
					unchanged("after the refusal")
					return
				}
				f.ok(err, "an edit")
				got := f.must(id)
				past := driver.EditsOf(got)
				equal(f, len(past), 1, "payloads that the job had before")
				equal(f, string(past[0].Payload), string(want.Payload), "the old payload")
				want.Payload, want.Headers = edited, got.Headers
				if state == pawl.Dead {
					want.State, want.Death, want.Attempts, want.Crashes, want.NotBefore = pawl.Ready, nil, 0, 0, time.Now()
				}
				f.same(got, want, "the job")
				if state != pawl.Delayed {
					equal(f, string(f.lease().Payload), string(edited), "the payload that a worker gets")
				}
			}))
	}
	return append(tests,
		newTest("of a signed job", "A job that is signed is not edited: its signature covers the payload.", func(f *fixture) {
			q := able[Editor](f)
			id := f.add(func(e *pawl.Envelope) { e.KeyID, e.Signature = "k", []byte{1} }).ID
			unchanged := f.unchanged()
			f.is(q.Edit(f.Context(), id, edited, nil), pawl.ErrNotEligible, "an edit")
			unchanged("after the refusal")
		}),
		newTest("in its place", "A job that is edited keeps its place among the jobs of its queue.", func(f *fixture) {
			q := able[Editor](f)
			first, second := f.add().ID, f.add().ID
			f.ok(q.Edit(f.Context(), first, edited, nil), "an edit")
			leases := f.fetch(9)
			equal(f, len(leases), 2, "jobs to fetch")
			equal(f, leases[0].ID, first, "first job")
			equal(f, leases[1].ID, second, "second job")
		}),
		restartTest("over a restart", "An edited payload is there after a restart, whatever its size was and is.", func(f *fixture) {
			q := able[Editor](f)
			small, large := f.add().ID, f.add(func(e *pawl.Envelope) { e.Payload = make([]byte, 9000) }).ID
			f.ok(q.Edit(f.Context(), small, make([]byte, 8000), nil), "an edit")
			f.ok(q.Edit(f.Context(), large, edited, nil), "an edit")
			f.restart()
			equal(f, len(f.must(small).Payload), 8000, "bytes")
			equal(f, driver.EditsOf(f.must(small))[0].SHA256, driver.SumOf([]byte("payload")), "the old payload")
			equal(f, string(f.must(large).Payload), string(edited), "payload")
		}),
	)
}

var editStories = []story{{
	name: "edit", rule: "Edit of a dead job emits EventEdited, then EventRevived. Edit of a waiting job emits EventEdited alone.",
	before: func(f *fixture) *pawl.Lease { f.held(pawl.Dead); f.held(pawl.Delayed); return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		q := able[Editor](f)
		for _, state := range []pawl.State{pawl.Dead, pawl.Delayed} {
			for _, e := range f.list(pawl.Filter{State: state}) {
				f.ok(q.Edit(f.Context(), e.ID, []byte{0xc0}, nil), "an edit")
			}
		}
	},
	want: "edited revived edited",
}}
