package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// tagged is a flow that says in its attributes how far it is.
func tagged(k *kit) *workflow.Flow[int, string] {
	return workflow.Define("tagged", func(r *workflow.Run, n int) (string, error) {
		for _, state := range []string{"begun", "waiting"} {
			k.at("before " + state)
			if err := workflow.SetAttribute(r, "state", state); err != nil {
				return "", err
			}
		}
		w, err := word.Wait(r, workflow.Forever)
		if err != nil {
			return "", err
		}
		return w, workflow.SetAttribute(r, "state", "")
	}, workflow.Retain(time.Hour))
}

// tag starts a run with attributes: name, value, and so on.
func tag(k *kit, f *workflow.Flow[int, string], id string, pairs ...string) *workflow.Handle[string] {
	k.t.Helper()
	attributes := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		attributes[pairs[i]] = pairs[i+1]
	}
	h, err := f.Start(k.t.Context(), k.e, id, 0, workflow.Attributes(attributes))
	require.NoError(k.t, err)
	k.settle()
	return h
}

// lists requires which runs a filter finds, in order, whatever the size of a page.
func lists(k *kit, f workflow.Filter, want ...string) {
	k.t.Helper()
	for _, size := range []int{1, 2, 100} {
		var found []string
		for after, more := "", true; more; more = after != "" {
			page, err := k.e.List(k.t.Context(), f, after, size)
			require.NoError(k.t, err)
			for _, run := range page.Runs {
				require.Empty(k.t, run.Error)
				found = append(found, run.ID)
			}
			after = page.Next
		}
		require.Equal(k.t, want, found, "%+v", f)
	}
}

func with(pairs ...string) workflow.Filter {
	f := workflow.Filter{Attributes: make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		f.Attributes[pairs[i]] = pairs[i+1]
	}
	return f
}

// Rule: a run has the attributes of its start, and those that it sets. A list finds runs by all of the given values, in
// the order of their starts, until the runs are removed.
func (suite) AttributesAreFound(t *testing.T, k *kit) {
	f := tagged(k)
	k.open(f)
	a := tag(k, f, "a", "customer", "1", "region", "eu")
	tag(k, f, "b", "customer", "2", "region", "eu")
	tag(k, f, "c", "customer", "1", "region", "us")
	tag(k, f, "d")
	require.Equal(t, map[string]string{"customer": "1", "region": "eu", "state": "waiting"}, k.info(a.Run()).Attributes)
	lists(k, with("region", "eu"), "a", "b")
	lists(k, with("customer", "1"), "a", "c")
	lists(k, with("customer", "1", "region", "us"), "c")
	lists(k, with("customer", "3"))
	lists(k, with("customer", "1", "region", "asia"))
	lists(k, with("state", "waiting"), "a", "b", "c", "d")
	lists(k, with("state", "begun"))
	both := with("state", "waiting")
	both.Prefix, both.Status = "b", workflow.Waiting
	lists(k, both, "b")
	k.crash()
	say(k, a.Run(), "bye", "")
	k.settle()
	lists(k, with("state", "waiting"), "b", "c", "d")
	lists(k, with("region", "eu"), "a", "b")
	require.Equal(t, map[string]string{"customer": "1", "region": "eu"}, k.info(a.Run()).Attributes)
	require.NoError(t, k.e.Check(t.Context()))
	k.pass(2 * time.Hour)
	lists(k, with("region", "eu"), "b")
	require.NoError(t, k.e.Check(t.Context()))
	require.Equal(t, 2+2+3, k.rowsIn("attributes"), "b and c have two of their start, and b, c, and d their state")
}

// Rule: a list finds the children of a run, the runs of a key, and those that were started in a time.
func (suite) ListByParentKeyAndTime(t *testing.T, k *kit) {
	f := tagged(k)
	parent := workflow.Define("parent", func(r *workflow.Run, n int) (string, error) {
		one := workflow.Go(r, "one", func(r *workflow.Run) (string, error) { return workflow.Call(r, "c", f, 1) })
		if _, err := workflow.Call(r, "c", f, 2); err != nil {
			return "", err
		}
		return one.Wait(r)
	})
	k.open(f, parent)
	began := k.now()
	p := startAndSettle(k, parent, "p", 1)
	startAndSettle(k, parent, "q", 1)
	children, err := k.e.List(t.Context(), workflow.Filter{Parent: p.Run()}, "", 10)
	require.NoError(t, err)
	require.Len(t, children.Runs, 2)
	for _, child := range children.Runs {
		require.Equal(t, p.Run(), child.Parent)
	}
	_, err = f.Start(t.Context(), k.e, "k", 1, workflow.Key("a"))
	require.NoError(t, err)
	lists(k, workflow.Filter{Key: "a"}, "k")
	lists(k, workflow.Filter{Key: "b"})
	lists(k, workflow.Filter{Parent: pawl.ID{1}})

	for i := range 3 {
		k.pass(24 * time.Hour)
		tag(k, f, fmt.Sprint("day ", i+1), "x", "y")
	}
	day := began.Add(24 * time.Hour)
	lists(k, workflow.Filter{Since: day}, "day 1", "day 2", "day 3")
	lists(k, workflow.Filter{Since: day.Add(1)}, "day 2", "day 3")
	lists(k, workflow.Filter{Since: day, Until: day.Add(24 * time.Hour)}, "day 1")
	lists(k, workflow.Filter{Since: day, Until: day.Add(48 * time.Hour), Attributes: map[string]string{"x": "y"}}, "day 1", "day 2")
	lists(k, workflow.Filter{Since: day.Add(72 * time.Hour)})
	page, err := k.e.List(t.Context(), with("x", "y"), "", 1)
	require.NoError(t, err)
	_, err = k.e.List(t.Context(), with("x", "z"), page.Next, 1)
	require.ErrorIs(t, err, pawl.ErrInvalid, "a cursor belongs to its filter")
}

// Rule: attributes stay over a restart of the run, a fork has them, and an import carries them.
func (suite) AttributesAreKept(t *testing.T, k *kit) {
	f := workflow.Define("rounds", func(r *workflow.Run, n int) (string, error) {
		if n == 0 {
			if err := workflow.SetAttribute(r, "round", "1"); err != nil {
				return "", err
			}
			return "", workflow.Restart(r, 1)
		}
		return word.Wait(r, workflow.Forever)
	})
	k.open(f)
	h, err := f.Start(t.Context(), k.e, "1", 0, workflow.Attributes(map[string]string{"a": "b"}))
	require.NoError(t, err)
	k.settle()
	want := map[string]string{"a": "b", "round": "1"}
	require.Equal(t, want, k.info(h.Run()).Attributes)
	fork, err := k.e.Fork(t.Context(), h.Run(), "", "2")
	require.NoError(t, err)
	require.Equal(t, want, k.info(fork).Attributes)
	lists(k, with("a", "b"), "1", "2")
	require.NoError(t, k.e.Check(t.Context()))

	other := under.Open(t, k.path+"2", Options{Now: k.now})
	defer func() { require.NoError(t, other.Close()) }()
	e := workflow.Open(other, &workflow.Options{Codec: k.codec})
	rows, err := k.e.Rows(t.Context(), h.Run(), "")
	require.NoError(t, err)
	_, err = new(workflow.RowsCheck).Add(&rows)
	require.NoError(t, err)
	require.NoError(t, e.RestoreRows(t.Context(), &rows))
	require.NoError(t, e.Check(t.Context()))
	page, err := e.List(t.Context(), with("round", "1"), "", 10)
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	require.Equal(t, want, page.Runs[0].Attributes)
}

// Rule: bad attributes are refused, by the start and by the run, and change nothing.
func (suite) AttributesAreRefused(t *testing.T, k *kit) {
	k.open(tagged(k))
	many := make(map[string]string)
	for i := range workflow.MaxAttributes {
		many[fmt.Sprint(i)] = "x"
	}
	for name, value := range map[string]string{
		"": "x", "a": "", "b": "\xff", "c\x00": "x", "d/e": "x", "f=g": "x", "_h": "x", "i": "\x00",
		strings.Repeat("n", workflow.MaxAttributeName+1): "x", "long": strings.Repeat("v", workflow.MaxAttributeValue+1),
	} {
		_, err := tagged(k).Start(t.Context(), k.e, "1", 0, workflow.Attributes(map[string]string{name: value}))
		require.ErrorIs(t, err, pawl.ErrInvalid, "%q", name)
	}
	f := workflow.Define("fills", func(r *workflow.Run, _ int) (string, error) {
		for _, bad := range []string{"", "a=b"} {
			if err := workflow.SetAttribute(r, bad, "x"); err == nil {
				return "", fmt.Errorf("%q was accepted", bad)
			}
		}
		err := workflow.SetAttribute(r, "one more", "x")
		var failed *workflow.StepError
		require.ErrorAs(t, err, &failed)
		require.ErrorContains(t, err, "more than 32")
		return "", workflow.SetAttribute(r, "0", "y")
	})
	k.restart("1", f)
	h, err := f.Start(t.Context(), k.e, "1", 0, workflow.Attributes(many))
	require.NoError(t, err)
	returns(k, h, "")
	many["0"] = "y"
	require.Equal(t, many, k.info(h.Run()).Attributes)
	many["one more"] = "x"
	_, err = f.Start(t.Context(), k.e, "2", 0, workflow.Attributes(many))
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = k.e.List(t.Context(), with("a=b", "x"), "", 1)
	require.ErrorIs(t, err, pawl.ErrInvalid)
}

// Rule: the end of the step and the attribute are one commit.
func (suite) AttributeLostInItsCommit(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f, g := tagged(k), k.gate("before waiting")
				k.open(f)
				go func() {
					_, _ = f.Start(context.Background(), k.e, "1", 0, workflow.Attributes(map[string]string{"a": "b"}))
				}()
				<-g.reached
				commit := k.hold()
				close(g.open)
				commit.endLife(at)
			},
			then: func(k *kit) {
				k.slots = -1
				f := tagged(k)
				k.open(f)
				h := find(k, f, "1")
				state, entries := "begun", 1
				if at == after {
					state, entries = "waiting", 2
				}
				done := 0
				for _, e := range k.entries(h.Run()) {
					if e.State == workflow.EntryDone {
						done++
					}
				}
				require.Equal(k.t, entries, done)
				require.Equal(k.t, map[string]string{"a": "b", "state": state}, k.info(h.Run()).Attributes)
				lists(k, with("state", state), "1")
				require.NoError(k.t, k.e.Check(k.t.Context()))
				k.close()
				k.slots = 1
				k.again()
				say(k, h.Run(), "bye", "")
				returns(k, find(k, f, "1"), "bye")
				require.NoError(k.t, k.e.Check(k.t.Context()))
			},
		}
	})
}

// Rule: a check finds rows of the index that are missing or too many. A list passes over the latter.
func (suite) DamagedAttributes(t *testing.T, k *kit) {
	f := tagged(k)
	k.open(f)
	h := tag(k, f, "1", "a", "b")
	run := h.Run()
	table := tableNamed("attributes")
	for _, key := range [][]byte{append([]byte("a\x00c\x00"), run[:]...), append([]byte("a\x00b\x00"), make([]byte, 16)...)} {
		k.mutate(func(w driver.Writer) error { return w.Put(table, key, driver.Seal(table, key, nil)) })
		require.ErrorIs(t, k.e.Check(t.Context()), pawl.ErrCorrupt)
		lists(k, with("a", "b"), "1")
		lists(k, with("a", "c"))
		k.mutate(func(w driver.Writer) error { return w.Delete(table, key) })
		require.NoError(t, k.e.Check(t.Context()))
	}
	key := append([]byte("a\x00b\x00"), run[:]...)
	k.mutate(func(w driver.Writer) error { return w.Delete(table, key) })
	require.ErrorContains(t, k.e.Check(t.Context()), "is not in table attributes")
}
