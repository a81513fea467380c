package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Mutator is a queue that stores rows of other packages beside its jobs. Package
// workflow needs one.
type Mutator interface {
	// Mutate applies a mutation and returns when it is durable.
	Mutate(ctx context.Context, m driver.Mutation, size int) error

	// ViewRows runs fn in a read transaction.
	ViewRows(ctx context.Context, fn func(driver.Reader) error) error
}

func (f *fixture) mutator() Mutator {
	f.Helper()
	m, ok := f.q.(Mutator)
	if !ok {
		f.Skip("the queue is no Mutator")
	}
	return m
}

// The tables of the cases.
var (
	testSpace  = driver.NewSpace("queuetest")
	testTable  = testSpace.Table("one")
	otherTable = testSpace.Table("other")
)

// mutation is a mutation made of functions. A nil function does nothing.
type mutation struct {
	check func(driver.Ops) error
	apply func(driver.Writer) error
}

func (m mutation) Check(ops driver.Ops) error {
	if m.check == nil {
		return nil
	}
	return m.check(ops)
}

func (m mutation) Apply(w driver.Writer) error {
	if m.apply == nil {
		return nil
	}
	return m.apply(w)
}

// boomAfter fails with errBoom after fn has succeeded.
func boomAfter[T any](fn func(T) error) func(T) error {
	return func(v T) error {
		if err := fn(v); err != nil {
			return err
		}
		return errBoom
	}
}

// put stores rows whose values equal their keys.
func put(keys ...string) func(driver.Writer) error {
	return func(w driver.Writer) error {
		for _, key := range keys {
			if err := w.Put(testTable, []byte(key), []byte(key)); err != nil {
				return err
			}
		}
		return nil
	}
}

// differ returns an error unless two values are equal. The functions of a mutation use
// it, because they must not end the goroutine of the queue.
func differ[T comparable](got, want T, what string) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// unlike returns an error unless an error matches want.
func unlike(err, want error, doing string) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: error %v, want %v", doing, err, want)
	}
	return nil
}

// scan returns an error unless a scan of a span returns these keys with their values.
func scan(r driver.Reader, s driver.Span, want string) error {
	var keys []string
	err := r.Scan(testTable, s, func(key, value []byte) bool {
		if keys = append(keys, string(key)); string(value) != string(key) {
			keys = append(keys, "with", string(value))
		}
		return true
	})
	return errors.Join(err, differ(strings.Join(keys, " "), want, fmt.Sprintf("rows of %+v", s)))
}

// rowsAre checks all rows in its own transaction.
func (f *fixture) rowsAre(want, when string) {
	f.Helper()
	f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) error { return scan(r, driver.Span{}, want) }), "rows "+when)
}

func (f *fixture) mutate(m mutation) {
	f.Helper()
	f.ok(f.mutator().Mutate(f.Context(), m, 0), "mutate")
}

// opsCases are operations of a mutation, with the state of their job before and after.
var opsCases = []struct {
	name        string
	before      pawl.State
	do          func(ops driver.Ops, l *pawl.Lease, id pawl.ID) error
	after       pawl.State // "" means gone
	settles     bool
	impossible  pawl.State // in which the operation is refused, with the error
	refusal     error
	needsHolder bool
}{
	{"hold", pawl.Leased, func(ops driver.Ops, l *pawl.Lease, _ pawl.ID) error { return ops.Hold(l) }, pawl.Leased, false, "", nil, true},
	{"save", pawl.Leased, func(ops driver.Ops, l *pawl.Lease, _ pawl.ID) error { return ops.Save(l, []byte{1}) }, pawl.Leased, false, "", nil, true},
	{"ack", pawl.Leased, func(ops driver.Ops, l *pawl.Lease, _ pawl.ID) error { return ops.Ack(l) }, "", true, "", nil, true},
	{"snooze", pawl.Leased, func(ops driver.Ops, l *pawl.Lease, _ pawl.ID) error {
		return ops.Snooze(l, ops.Now().Add(time.Hour))
	}, pawl.Delayed, true, "", nil, true},
	{"snooze until a time that has passed", pawl.Leased, func(ops driver.Ops, l *pawl.Lease, _ pawl.ID) error {
		return ops.Snooze(l, ops.Now())
	}, pawl.Ready, true, "", nil, true},
	{"run now", pawl.Delayed, func(ops driver.Ops, _ *pawl.Lease, id pawl.ID) error { return ops.RunNow(id) }, pawl.Ready, false, pawl.Dead, pawl.ErrConflict, false},
	{"retry", pawl.Dead, func(ops driver.Ops, _ *pawl.Lease, id pawl.ID) error { return ops.Retry(id) }, pawl.Ready, false, pawl.Delayed, pawl.ErrConflict, false},
}

// holds returns a job in a state, with its lease if it has one.
func (f *fixture) holds(state pawl.State) (pawl.ID, *pawl.Lease) {
	f.Helper()
	if state == pawl.Leased {
		f.add()
		l := f.lease()
		return l.ID, l
	}
	return f.held(state), nil
}

// stateOf returns the state of a job, or "" when it is gone.
func (f *fixture) stateOf(id pawl.ID) pawl.State {
	f.Helper()
	if e := f.job(id); e != nil {
		return e.State
	}
	return ""
}

// sameJob returns how a job in the transaction differs from a job in a state. A state
// of "" means that there is no job.
func sameJob(ops driver.Ops, id pawl.ID, state pawl.State) error {
	job, err := ops.Job(id)
	switch {
	case state == "" && errors.Is(err, pawl.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(differ(job.ID, id, "ID in the transaction"), differ(job.State, state, "state of the job in the transaction"))
}

func mutationTests() (tests []test) {
	for _, c := range opsCases {
		tests = append(tests, test{
			name: c.name,
			rule: "The operations and the rows of a mutation take effect together.",
			run: func(f *fixture) {
				f.mutator()
				id, l := f.holds(c.before)
				f.mutate(mutation{func(ops driver.Ops) error {
					state, err := ops.State(id)
					return errors.Join(err, differ(state, c.before, "state in the transaction"), sameJob(ops, id, c.before), c.do(ops, l, id))
				}, put("row")})
				equal(f, f.stateOf(id), c.after, "state")
				f.rowsAre("row", "after the mutation")
				if l != nil {
					equal(f, driver.Settled(l), c.settles, "the lease is settled")
				}
			},
		}, test{
			name: c.name + ", refused",
			rule: "An error of Check or Apply is the result of the mutation, and neither its operations nor its rows take " +
				"effect.",
			run: func(f *fixture) {
				m := f.mutator()
				id, l := f.holds(c.before)
				do := func(ops driver.Ops) error { return c.do(ops, l, id) }
				unchanged := f.unchanged()
				for half, refused := range map[string]mutation{
					"Check": {boomAfter(do), put("row")},
					"Apply": {do, boomAfter(put("row"))},
				} {
					if err := m.Mutate(f.Context(), refused, 0); err != errBoom {
						f.Errorf("an error of %s came back as %v", half, err)
					}
					unchanged(half + " refused")
					f.rowsAre("", half+" refused")
				}
				if l != nil {
					f.ack(l)
				}
			},
		})
		if c.needsHolder {
			tests = append(tests, test{
				name: c.name + " by a stale holder",
				rule: "A mutation that names a lost lease is refused with ErrLeaseLost.",
				run: func(f *fixture) {
					m := f.mutator()
					_, l := f.holds(pawl.Leased)
					f.release(l)
					f.lease()
					stale := &pawl.Lease{Envelope: l.Envelope, Token: l.Token, Length: l.Length}
					err := m.Mutate(f.Context(), mutation{func(ops driver.Ops) error { return c.do(ops, stale, l.ID) }, put("row")}, 0)
					f.is(err, pawl.ErrLeaseLost, c.name)
					f.rowsAre("", "of a stale holder")
				},
			})
			continue
		}
		tests = append(tests, test{
			name: c.name + ", impossible",
			rule: "An operation of a mutation is refused as the queue's own method refuses it. The mutation may continue " +
				"without it.",
			run: func(f *fixture) {
				id, _ := f.holds(c.impossible)
				f.mutator()
				f.mutate(mutation{func(ops driver.Ops) error {
					return errors.Join(unlike(c.do(ops, nil, id), c.refusal, c.name),
						unlike(c.do(ops, nil, pawl.NewID(time.Now())), pawl.ErrNotFound, c.name+" of no job"))
				}, put("row")})
				equal(f, f.stateOf(id), c.impossible, "state")
				f.rowsAre("row", "after the mutation")
			},
		})
	}
	return append(append(tests, rowTests...), declaredTests()...)
}
