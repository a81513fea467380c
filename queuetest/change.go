package queuetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Changer is a queue that can change jobs by their IDs, each under a condition.
type Changer interface {
	// Change applies a change to each job, all in one transition, and returns an error
	// for each ID. A job in a wrong state, or one that does not match the condition,
	// gives pawl.ErrNotEligible.
	Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)

	// DryRun returns what Change would return, and changes nothing.
	DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)
}

func (f *fixture) changer() Changer { return able[Changer](f) }

// change applies a change and returns the error of each job.
func (f *fixture) change(c pawl.Change, ids ...pawl.ID) []error {
	f.Helper()
	errs, err := f.changer().Change(f.Context(), c, ids...)
	f.ok(err, "change")
	equal(f, len(errs), len(ids), "errors of a change")
	return errs
}

// dryRun is change for a dry run.
func (f *fixture) dryRun(c pawl.Change, ids ...pawl.ID) []error {
	f.Helper()
	unchanged := f.unchanged()
	errs, err := f.changer().DryRun(f.Context(), c, ids...)
	f.ok(err, "dry run")
	equal(f, len(errs), len(ids), "errors of a dry run")
	unchanged("after the dry run")
	return errs
}

// when is a condition that calls a function with the whole job.
type when func(*pawl.Envelope) bool

// whenRecord is a condition that reads neither payload nor history.
type whenRecord struct{ when }

func (whenRecord) ReadsBody() bool { return false }

func (fn when) Matches(job *pawl.Envelope) bool { return fn(job) }

func changeTests() (tests []test) {
	for _, verb := range []pawl.Verb{pawl.VerbRetry, pawl.VerbCancel, pawl.VerbDelete, pawl.VerbRunNow} {
		tests = append(tests,
			newTest("condition of "+string(verb),
				"A change applies to the jobs that match its condition in its transaction. Other jobs stay unchanged and "+
					"give ErrNotEligible, which is an ErrConflict.", func(f *fixture) {
					for _, state := range accepts[verb] {
						id := f.held(state)
						unchanged := f.unchanged()
						for _, condition := range []pawl.Condition{
							pawl.Filter{Queue: "another"},
							pawl.Filter{DiedBefore: time.Now().Add(-time.Hour)},
							when(func(*pawl.Envelope) bool { return false }),
						} {
							err := f.change(pawl.Change{Verb: verb, If: condition}, id)[0]
							f.is(err, pawl.ErrNotEligible, "a change of a job that does not match")
							f.is(err, pawl.ErrConflict, "a change of a job that does not match")
							unchanged("after the refusal")
						}
						f.ok(f.change(pawl.Change{Verb: verb, If: pawl.Filter{State: state}}, id)[0], "a change of a job that matches")
						f.fresh(f.settings)
					}
				}),
		)
		for _, state := range states {
			tests = append(tests,
				newTest(fmt.Sprintf("dry run of %s, %s", verb, state),
					"A dry run gives the same answers as the change would, and changes nothing.", func(f *fixture) {
						id, none := f.held(state), pawl.NewID(time.Now())
						dry := f.dryRun(pawl.Change{Verb: verb}, id, none)
						real := f.change(pawl.Change{Verb: verb}, id, none)
						for i := range real {
							if fmt.Sprint(dry[i]) != fmt.Sprint(real[i]) {
								f.Errorf("the dry run says %v, the change %v", dry[i], real[i])
							}
						}
						f.is(dry[1], pawl.ErrNotFound, "a job that never was")
					}),
			)
		}
	}
	return append(tests, changeCases()...)
}

func changeCases() []test {
	return []test{
		newTest("decided in the transaction",
			"The condition is checked in the transaction, not when the jobs were listed: a job that became dead again is "+
				"judged by its last death.", func(f *fixture) {
				ids := []pawl.ID{f.held(pawl.Dead), f.held(pawl.Dead)}
				f.pass(time.Second)
				before := time.Now()
				equal(f, len(f.list(pawl.Filter{State: pawl.Dead, DiedBefore: before})), 2, "jobs that became dead before")
				f.retry(ids[0], false)
				f.pass(time.Second)
				f.abandon(f.lease())
				errs := f.change(pawl.Change{Verb: pawl.VerbDelete, If: pawl.Filter{State: pawl.Dead, DiedBefore: before}}, ids...)
				f.is(errs[0], pawl.ErrNotEligible, "delete of the job that became dead again")
				f.ok(errs[1], "delete of the other")
				equal(f, f.must(ids[0]).State, pawl.Dead, "state")
				equal(f, f.job(ids[1]) == nil, true, "the other is gone")
			}),
		newTest("several jobs",
			"A change of several jobs changes those that it can and returns one error for each ID, in the order of the IDs.", func(f *fixture) {
				dead, also, ready := f.held(pawl.Dead), f.held(pawl.Dead), f.held(pawl.Ready)
				errs := f.change(pawl.Change{Verb: pawl.VerbRetry}, dead, pawl.NewID(time.Now()), ready, also, dead)
				for i, want := range []error{nil, pawl.ErrNotFound, pawl.ErrNotEligible, nil, pawl.ErrNotEligible} {
					f.is(errs[i], want, fmt.Sprint("job ", i))
				}
				f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 3}, "the change")
			}),
		newTest("what a condition sees",
			"A condition sees the job as Job returns it. It sees no payload and no history if it says that it reads "+
				"neither.", func(f *fixture) {
				id := f.add(func(e *pawl.Envelope) { e.Payload = make([]byte, 5000) }).ID
				f.abandon(f.lease())
				want, seen := f.must(id), (*pawl.Envelope)(nil)
				see := when(func(e *pawl.Envelope) bool {
					own := *e
					seen = &own
					return false
				})
				errs := f.change(pawl.Change{Verb: pawl.VerbRetry, If: see}, id)
				f.is(errs[0], pawl.ErrNotEligible, "retry")
				f.same(seen, want, "the job that the condition sees")
				equal(f, len(seen.Payload), 5000, "bytes of its payload")
				equal(f, len(seen.History), 1, "entries of its history")

				errs = f.change(pawl.Change{Verb: pawl.VerbRetry, If: whenRecord{see}}, id)
				f.is(errs[0], pawl.ErrNotEligible, "retry")
				want.Payload, want.History = nil, nil
				f.same(seen, want, "the job that a condition of the record sees")
				equal(f, len(f.must(id).Payload), 5000, "bytes of the stored payload")
			}),
		newTest("retry of what cannot live",
			"A dead job past its deadline, or one whose unique key another job has, cannot be retried. It gives "+
				"ErrConflict, not ErrNotEligible, and stays dead.", func(f *fixture) {
				late := f.add(within(time.Minute)).ID
				f.pass(time.Minute)
				first := f.held(pawl.Dead, unique("u"))
				second := f.held(pawl.Dead, unique("u"))
				retry := pawl.Change{Verb: pawl.VerbRetry}
				for i, errs := range [][]error{f.dryRun(retry, late, first, second), f.change(retry, late, first, second)} {
					f.ok(errs[1], "the first job of the key")
					for _, n := range []int{0, 2} {
						f.is(errs[n], pawl.ErrConflict, fmt.Sprint("job ", n))
						if errors.Is(errs[n], pawl.ErrNotEligible) {
							f.Errorf("job %d is dead and not eligible, in run %d", n, i)
						}
					}
				}
				f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1, Dead: 2}, "the change")
			}),
		newTest("refused",
			"A change of an unknown verb returns ErrInvalid, one of more jobs than a batch may have ErrBatchTooLarge, one "+
				"with an ended context ErrNotAccepted, and one of a closed queue ErrClosed. None of these changes "+
				"anything.", func(f *fixture) {
				id := f.held(pawl.Dead)
				unchanged := f.unchanged()
				q := f.changer()
				for _, call := range []func(context.Context, pawl.Change, ...pawl.ID) ([]error, error){q.Change, q.DryRun} {
					_, err := call(f.Context(), pawl.Change{Verb: "unknown"}, id)
					f.is(err, pawl.ErrInvalid, "an unknown verb")
					_, err = call(f.Context(), pawl.Change{Verb: pawl.VerbDelete}, make([]pawl.ID, pawl.MaxBatchJobs+1)...)
					f.is(err, pawl.ErrBatchTooLarge, "too many jobs")
				}
				ctx := f.ended()
				_, err := q.Change(ctx, pawl.Change{Verb: pawl.VerbDelete}, id)
				f.is(err, pawl.ErrNotAccepted, "a change")
				unchanged("after the refusals")
				f.closed()
				_, err = q.Change(f.Context(), pawl.Change{Verb: pawl.VerbDelete}, id)
				f.is(err, pawl.ErrClosed, "a change")
			}),
		newTest("condition of a transfer", "A dead job that does not match the condition of a transfer stays dead and "+
			"unchanged.", func(f *fixture) {
			tr := f.transferer()
			id := f.held(pawl.Dead)
			before := f.must(id)
			job := &pawl.Envelope{ID: id, Kind: "k", Queue: "elsewhere"}
			f.is(tr.Transfer(f.Context(), job, pawl.Filter{Kind: "another"}), pawl.ErrNotEligible, "transfer")
			f.same(f.must(id), before, "the dead job")
			f.ok(tr.Transfer(f.Context(), job, pawl.Filter{Kind: "k"}), "transfer")
		}),
	}
}
