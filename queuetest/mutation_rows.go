package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// enqueueIn enqueues jobs in a mutation.
func enqueueIn(ops driver.Ops, jobs ...*pawl.Envelope) error {
	_, err := ops.Enqueue(jobs...)
	return err
}

// spans have these keys of the rows a, b1, b2, b3, and c.
var spans = []struct {
	span driver.Span
	want string
}{
	{driver.Span{}, "a b1 b2 b3 c"},
	{driver.Span{Prefix: []byte("b")}, "b1 b2 b3"},
	{driver.Span{Prefix: []byte("b"), From: []byte("b2")}, "b2 b3"},
	{driver.Span{From: driver.After([]byte("b2"))}, "b3 c"},
	{driver.Span{Limit: 2}, "a b1"},
	{driver.Span{Reverse: true}, "c b3 b2 b1 a"},
	{driver.Span{Prefix: []byte("b"), Reverse: true, Limit: 2}, "b3 b2"},
	{driver.Span{Prefix: []byte("x")}, ""},
}

// rowTests are the cases of mutations about rows and what commits with them.
var rowTests = []test{{
	name: "enqueue",
	rule: "A job that a mutation enqueues exists when its rows do. Its ID is known before the commit.",
	run: func(f *fixture) {
		f.mutator()
		e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k"}
		f.mutate(mutation{func(ops driver.Ops) error { return enqueueIn(ops, e) }, put("row")})
		equal(f, f.lease().ID, e.ID, "the job that is fetched")
		f.rowsAre("row", "after the mutation")
		err := f.mutator().Mutate(f.Context(), mutation{func(ops driver.Ops) error { return enqueueIn(ops, &pawl.Envelope{ID: e.ID, Kind: "k"}) }, put("late")}, 0)
		f.is(err, pawl.ErrConflict, "enqueue of an ID that is taken")
		f.rowsAre("row", "after the conflict")
	},
}, {
	name: "a job named twice",
	rule: "A mutation that names a job twice is invalid.",
	run: func(f *fixture) {
		f.mutator()
		_, l := f.holds(pawl.Leased)
		err := f.mutator().Mutate(f.Context(), mutation{func(ops driver.Ops) error {
			if err := ops.Hold(l); err != nil {
				return err
			}
			return ops.Ack(l)
		}, put("row")}, 0)
		f.is(err, pawl.ErrInvalid, "hold and ack")
		f.rowsAre("", "afterwards")
	},
}, {
	name: "a unique key taken twice",
	rule: "A mutation that retries two dead jobs of one unique key is invalid.",
	run: func(f *fixture) {
		f.mutator()
		keyed := func(e *pawl.Envelope) { e.UniqueKey = "key" }
		first, second := f.held(pawl.Dead, keyed), f.held(pawl.Dead, keyed)
		err := f.mutator().Mutate(f.Context(), mutation{func(ops driver.Ops) error {
			if err := ops.Retry(first); err != nil {
				return err
			}
			return ops.Retry(second)
		}, put("row")}, 0)
		f.is(err, pawl.ErrInvalid, "two retries")
		f.rowsAre("", "afterwards")
		equal(f, f.stateOf(first), pawl.Dead, "state of the first")
		equal(f, f.stateOf(second), pawl.Dead, "state of the second")
	},
}, {
	name: "spans",
	rule: "A scan returns the rows of a span in key order, or in reverse order. A transaction reads its own writes.",
	run: func(f *fixture) {
		f.mutator()
		f.mutate(mutation{apply: put("c", "b2", "a", "b1", "bb")})
		f.mutate(mutation{apply: func(w driver.Writer) error {
			err := errors.Join(w.Delete(testTable, []byte("bb")), w.Delete(testTable, []byte("none")), put("b3")(w))
			for _, c := range spans {
				err = errors.Join(err, scan(w, c.span, c.want))
			}
			return err
		}})
		f.rowsAre("a b1 b2 b3 c", "afterwards")
	},
}, {
	name: "reading ahead",
	rule: "A view reads the same, whatever it has read ahead.",
	run: func(f *fixture) {
		f.mutator()
		f.mutate(mutation{apply: put("c", "b2", "a", "b1", "b3")})
		for _, ahead := range spans {
			var n driver.Needs
			if !ahead.span.Reverse {
				n.Span(testTable, ahead.span)
			}
			n.Read(testTable, []byte("b1"))
			n.Read(otherTable, []byte("b1"))
			f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) error {
				err := driver.ReadAhead(r, &n)
				for _, c := range spans {
					err = errors.Join(err, scan(r, c.span, c.want))
				}
				for table, want := range map[*driver.Table]string{testTable: "b1", otherTable: ""} {
					value, failed := r.Get(table, []byte("b1"))
					err = errors.Join(err, failed, differ(string(value), want, "the value in table "+table.String()))
				}
				return err
			}), "view")
		}
	},
}, {
	name: "tables",
	rule: "Tables do not share rows. A table that was never written is empty.",
	run: func(f *fixture) {
		get := func(r driver.Reader, table *driver.Table, want string) error {
			value, err := r.Get(table, []byte("key"))
			return errors.Join(err, differ(string(value), want, "the value in table "+table.String()), differ(value == nil, want == "", "there is none"))
		}
		f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) error { return get(r, testTable, "") }), "view")
		f.mutate(mutation{apply: put("key")})
		f.ok(f.mutator().ViewRows(f.Context(), func(r driver.Reader) error {
			return errors.Join(get(r, testTable, "key"), get(r, otherTable, ""))
		}), "view")
	},
}, {
	name: "delete of a span",
	rule: "DeleteSpan removes rows in key order, up to its limit of rows, until it has removed the number of bytes that it " +
		"was asked for.",
	run: func(f *fixture) {
		f.mutator()
		f.mutate(mutation{apply: put("a", "b1", "b2", "b3", "c")})
		f.mutate(mutation{apply: func(w driver.Writer) error {
			rows, bytes, err := w.DeleteSpan(testTable, driver.Span{Prefix: []byte("b")}, 5)
			err = errors.Join(err, differ(rows, 2, "rows"), differ(bytes, 8, "bytes"))
			rows, _, failed := w.DeleteSpan(testTable, driver.Span{Limit: 1}, 100)
			return errors.Join(err, failed, differ(rows, 1, "rows"))
		}})
		f.rowsAre("b3 c", "afterwards")
	},
}, {
	name: "scan beside a deleted span",
	rule: "A scan in either direction sees every row that the transaction has not deleted, however many it has.",
	run: func(f *fixture) {
		const rows, first, last = 2000, 300, 1700
		f.mutator()
		name := func(i int) string { return fmt.Sprintf("%04d", i) }
		f.mutate(mutation{apply: func(w driver.Writer) (err error) {
			for i := range rows {
				err = errors.Join(err, put(name(i))(w))
			}
			return err
		}})
		f.mutate(mutation{apply: func(w driver.Writer) (err error) {
			for i := first; i < last; i++ {
				err = errors.Join(err, w.Delete(testTable, []byte(name(i))))
			}
			var there []string
			for i := range rows {
				if i < first || i >= last {
					there = append(there, name(i))
				}
			}
			err = errors.Join(err, scan(w, driver.Span{}, strings.Join(there, " ")))
			slices.Reverse(there)
			return errors.Join(err, scan(w, driver.Span{Reverse: true}, strings.Join(there, " ")),
				scan(w, driver.Span{Prefix: []byte("0"), Reverse: true, Limit: 1}, name(first-1)))
		}})
	},
}, {
	name: "restart", needs: mutating | persists,
	rule: "Rows survive a restart.",
	run: func(f *fixture) {
		f.mutator()
		f.mutate(mutation{apply: put("row")})
		f.restart()
		f.rowsAre("row", "after a restart")
	},
}, {
	name: "a panic",
	rule: "A panic in a mutation becomes its error, and the queue continues to work.",
	run: func(f *fixture) {
		m := f.mutator()
		for _, bad := range []mutation{
			{check: func(driver.Ops) error { panic(nil) }},
			{apply: func(w driver.Writer) error { panic(put("boom")(w)) }},
		} {
			if err := m.Mutate(f.Context(), bad, 0); err == nil {
				f.Errorf("a panic is no error")
			}
		}
		f.mutate(mutation{apply: put("later")})
		f.rowsAre("later", "after the panics")
	},
}, {
	name: "neighbors",
	rule: "Mutations take effect one after another. Each sees the rows of the earlier ones, and a failed mutation affects " +
		"no other.",
	run: func(f *fixture) {
		m := f.mutator()
		const n = 20
		var calls [n]<-chan error
		for i := range n {
			calls[i] = f.started(func() error {
				count := 0
				return m.Mutate(f.Context(), mutation{
					func(ops driver.Ops) error {
						count = 0
						return ops.Scan(testTable, driver.Span{}, func(_, _ []byte) bool { count++; return true })
					},
					func(w driver.Writer) error {
						if err := put(fmt.Sprintf("%02d", count))(w); err != nil || i%5 != 0 {
							return err
						}
						return errBoom
					},
				}, 0)
			})
		}
		for i, call := range calls {
			want := error(nil)
			if i%5 == 0 {
				want = errBoom
			}
			f.ends(call, want, "a mutation among others")
		}
		f.rowsAre("00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15", "in the end")
	},
}, {
	name: "on commit",
	rule: "OnCommit calls its function once, when the rows are durable, and never if they are not.",
	run: func(f *fixture) {
		m, called := f.mutator(), 0
		note := func(w driver.Writer) error { w.OnCommit(func() { called++ }); return nil }
		f.mutate(mutation{apply: note})
		synctest.Wait()
		equal(f, called, 1, "calls")
		f.is(m.Mutate(f.Context(), mutation{apply: boomAfter(note)}, 0), errBoom, "mutate")
		synctest.Wait()
		equal(f, called, 1, "calls after an error")
	},
}}
