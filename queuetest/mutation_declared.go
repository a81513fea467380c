package queuetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// testIndex is a table whose rows have no owner.
var testIndex = testSpace.Index("index")

// declared is a mutation that declares what it touches.
type declared struct {
	mutation
	declare func(n *driver.Needs)
}

func (m declared) Declare(n *driver.Needs) { m.declare(n) }

// numberAt reads a number, 0 if there is no row.
func numberAt(r driver.Reader, key string) (int, error) {
	value, err := r.Get(testTable, []byte(key))
	if value == nil || err != nil {
		return 0, err
	}
	return strconv.Atoi(string(value))
}

// move adds to one number what it takes from another, and notes both in the index.
func move(from, to string) mutation {
	var left, right int
	return mutation{
		func(ops driver.Ops) error {
			var err, failed error
			left, err = numberAt(ops, from)
			right, failed = numberAt(ops, to)
			return errors.Join(err, failed)
		},
		func(w driver.Writer) error {
			return errors.Join(
				w.Put(testTable, []byte(from), []byte(strconv.Itoa(left-1))),
				w.Put(testTable, []byte(to), []byte(strconv.Itoa(right+1))),
				w.Put(otherTable, []byte(from+"/row"), []byte("x")),
				w.Put(testIndex, []byte("at "+from), []byte("x")))
		},
	}
}

// balanced requires that the numbers add up to 0, in a mutation that declares nothing.
func balanced() mutation {
	return mutation{check: func(ops driver.Ops) error {
		sum := 0
		var bad error
		err := ops.Scan(testTable, driver.Span{}, func(_, value []byte) bool {
			n, err := strconv.Atoi(string(value))
			sum, bad = sum+n, errors.Join(bad, err)
			return true
		})
		return errors.Join(err, bad, differ(sum, 0, "the sum of all numbers"))
	}}
}

// declarations are what mutations that move declare.
var declarations = []struct {
	name string
	of   func(n *driver.Needs, from, to string)
}{
	{"all", func(n *driver.Needs, from, to string) {
		n.Own(testTable, []byte(from))
		n.Own(testTable, []byte(to))
	}},
	{"all, in the other order, with what they read", func(n *driver.Needs, from, to string) {
		n.Own(testTable, []byte(to))
		n.Own(testTable, []byte(from))
		n.Read(testTable, []byte(from))
		n.Span(testTable, driver.Span{Prefix: []byte(to), Limit: 1})
	}},
	{"half", func(n *driver.Needs, from, to string) { n.Own(testTable, []byte(from)) }},
	{"rows alone", func(n *driver.Needs, from, to string) {
		n.Row(testTable, []byte(from))
		n.Row(testTable, []byte(to))
	}},
	{"others", func(n *driver.Needs, from, to string) { n.Own(testTable, []byte("z")) }},
	{"nothing", func(*driver.Needs, string, string) {}},
}

// declaredTests are the cases of mutations that declare what they touch.
func declaredTests() (tests []test) {
	for _, d := range declarations {
		tests = append(tests, newTest("declares "+d.name,
			"A mutation does the same whatever it declares.", func(f *fixture) {
				for range 2 { // when the rows are missing, and when they are there
					f.ok(f.mutator().Mutate(f.Context(), declared{move("a", "b"), func(n *driver.Needs) { d.of(n, "a", "b") }}, 0), "mutate")
				}
				f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) error {
					from, err := numberAt(r, "a")
					to, failed := numberAt(r, "b")
					note, missed := r.Get(testIndex, []byte("at a"))
					return errors.Join(err, failed, missed, differ(from, -2, "a"), differ(to, 2, "b"), differ(string(note), "x", "the index"))
				}), "view")
			}))
	}
	return append(tests,
		newTest("of a declared job", "A mutation may name a job whether it declares the job or not.", func(f *fixture) {
			for _, declares := range []bool{true, false} {
				f.add()
				l := f.lease()
				f.ok(f.mutator().Mutate(f.Context(), declared{
					mutation{check: func(ops driver.Ops) error {
						return errors.Join(unlike(ops.RunNow(pawl.ID{1}), pawl.ErrNotFound, "run now of no job"), sameJob(ops, l.ID, pawl.Leased), ops.Ack(l))
					}},
					func(n *driver.Needs) {
						if declares {
							n.Job(l.ID)
							n.Job(pawl.ID{1})
						}
					},
				}, 0), "mutate")
				equal(f, f.stateOf(l.ID), "", "state")
			}
		}))
}

// mutationsOfSeveral has several clients carry out mutations at the same time.
var mutationsOfSeveral = newTest("mutations",
	"Mutations of several clients take effect one after another, whatever they declare. What they do to jobs and rows "+
		"happens once.", func(f *fixture) {
		const clients, rounds = 3, 10
		numbers := [...]string{"a", "b", "c"}
		calls := make(chan error)
		all := [clients]Mutator{f.mutator(), f.another().mutator(), f.another().mutator()}
		for client, m := range all {
			go func() { // one after another, so that those of the clients meet
				var err error
				for round := range rounds {
					for i, d := range declarations {
						from, to := numbers[i%3], numbers[(i+1+(client+round)%2)%3]
						err = errors.Join(err, m.Mutate(f.Context(), declared{move(from, to), func(n *driver.Needs) { d.of(n, from, to) }}, 0))
					}
					err = errors.Join(err, m.Mutate(f.Context(), balanced(), 0))
				}
				calls <- err
			}()
		}
		for range clients {
			f.hears(calls, nil, "the mutations of a client")
		}
		want := make(map[string]int)
		for client := range clients {
			for round := range rounds {
				for i := range declarations {
					want[numbers[i%3]]--
					want[numbers[(i+1+(client+round)%2)%3]]++
				}
			}
		}
		f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) (err error) {
			for key, n := range want {
				got, failed := numberAt(r, key)
				err = errors.Join(err, failed, differ(got, n, "number "+key))
			}
			return err
		}), "view")
	}).needing(mutating | several)

// missingRowsOfSeveral has two clients rely on the absence of each other's row. Both mutations of a
// round are under way before either of them reads.
var missingRowsOfSeveral = newTest("mutations that rely on a missing row",
	"If each of two mutations of several clients stores its row unless the other row is there, one of them does, even "+
		"though the rows that they declare are missing.", func(f *fixture) {
		const rounds = 20
		key := func(client, round int) []byte { return fmt.Appendf(nil, "%d of round %02d", client, round) }
		var begun [rounds]atomic.Int32 // mutations
		var met [rounds]chan struct{}
		for round := range met {
			met[round] = make(chan struct{})
		}
		// meet waits until both mutations of a round have begun.
		meet := func(round int) {
			if begun[round].Add(1) == 2 {
				close(met[round])
			}
			select {
			case <-met[round]:
			case <-time.After(hearsay): // and Check finds it out
			}
		}
		calls := make(chan error, 2)
		for client, m := range [...]Mutator{f.mutator(), f.another().mutator()} {
			go func() {
				var err error
				for round := range rounds {
					own, other := key(client, round), key(1-client, round)
					free := false
					var once sync.Once
					err = errors.Join(err, m.Mutate(f.Context(), declared{
						mutation{
							func(ops driver.Ops) error {
								if begun[round].Load() != 2 {
									return errors.New("a mutation reads before the other has begun")
								}
								value, err := ops.Get(testTable, other)
								free = value == nil
								return err
							},
							func(w driver.Writer) error {
								if !free {
									return nil
								}
								return w.Put(testTable, own, own)
							},
						},
						func(n *driver.Needs) {
							once.Do(func() { meet(round) })
							n.Row(testTable, own)
							n.Row(testTable, other)
						},
					}, 0))
				}
				calls <- err
			}()
		}
		for range 2 {
			f.hears(calls, nil, "the mutations of a client")
		}
		f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) (err error) {
			for round := range rounds {
				first, failed := r.Get(testTable, key(0, round))
				second, missed := r.Get(testTable, key(1, round))
				err = errors.Join(err, failed, missed, differ((first == nil) != (second == nil), true, fmt.Sprintf("round %d has one row", round)))
			}
			return err
		}), "view")
	}).needing(mutating | several)
