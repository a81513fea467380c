package scenario

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a stream that is full loses its oldest items, and its reader learns how many it missed. A check finds nothing
// wrong with what is left.
func (suite) StreamLosesItsOldestItems(t *testing.T, k *kit) {
	const items = 12
	f := workflow.Define("large", func(r *workflow.Run, _ int) (int, error) {
		for i := range items {
			if err := lines.Append(r, fmt.Sprint(i+1, strings.Repeat("x", workflow.MaxValue-1024))); err != nil {
				return 0, err
			}
			if i == 1 {
				if _, err := word.Wait(r, workflow.Forever); err != nil {
					return 0, err
				}
			}
		}
		return 0, nil
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	next, stop := iter.Pull2(lines.Watch(t.Context(), k.e, h.Run(), 0))
	defer stop()
	item, err, _ := next()
	require.NoError(t, err)
	require.EqualValues(t, 1, item.N)
	say(k, h.Run(), "go", "")
	returns(k, h, 0)
	seen, skipped := item.N, uint64(0)
	for {
		item, err, more := next()
		if !more {
			break
		}
		require.NoError(t, err)
		require.Equal(t, seen+item.Skipped+1, item.N)
		require.True(t, strings.HasPrefix(item.Value, fmt.Sprint(item.N, "x")))
		seen, skipped = item.N, skipped+item.Skipped
	}
	require.EqualValues(t, items, seen)
	require.NotZero(t, skipped)
	streams, err := k.e.Streams(t.Context(), h.Run())
	require.NoError(t, err)
	require.Len(t, streams, 1)
	require.EqualValues(t, items, streams[0].Last)
	require.LessOrEqual(t, streams[0].Bytes, int64(8<<20))
	require.Greater(t, streams[0].Bytes, int64(4<<20), "it keeps most")
	for item, err := range lines.Read(t.Context(), k.e, h.Run(), 0) {
		require.NoError(t, err)
		require.Equal(t, streams[0].First, item.N)
		require.Equal(t, streams[0].First-1, item.Skipped)
		break
	}
	require.NoError(t, k.e.Check(t.Context()))
}

// Rule: an item that is too large, and one stream too many, are refused, and the run can go on.
func (suite) StreamLimits(t *testing.T, k *kit) {
	f := workflow.Define("limits", func(r *workflow.Run, _ int) (int, error) {
		if err := lines.Append(r, strings.Repeat("x", workflow.MaxValue)); !errors.Is(err, workflow.ErrTooLarge) {
			return 0, fmt.Errorf("a large item: %w", err)
		}
		if err := workflow.DefineStream[int]("").Append(r, 1); !errors.Is(err, pawl.ErrInvalid) {
			return 0, fmt.Errorf("a stream without a name: %w", err)
		}
		for i := range workflow.MaxStreams {
			if err := workflow.DefineStream[int](fmt.Sprint("stream ", i)).Append(r, i); err != nil {
				return 0, err
			}
		}
		if err := lines.Append(r, "a"); !errors.Is(err, workflow.ErrTooMany) {
			return 0, fmt.Errorf("one stream too many: %w", err)
		}
		return 0, workflow.DefineStream[int]("stream 0").Append(r, 7)
	})
	k.open(f)
	h := start(k, f, "1", 0)
	returns(k, h, 0)
	streams, err := k.e.Streams(t.Context(), h.Run())
	require.NoError(t, err)
	require.Len(t, streams, workflow.MaxStreams)
	require.Equal(t, workflow.StreamInfo{Name: "stream 0", First: 1, Last: 2, Bytes: streams[0].Bytes}, streams[0])
	require.NoError(t, k.e.Check(t.Context()))
}

// Rule: a run does not go back over what it has appended: a signal that comes later stays unread.
func (suite) AppendMakesATimeoutFinal(t *testing.T, k *kit) {
	f := workflow.Define("final", func(r *workflow.Run, _ int) (string, error) {
		got, err := word.Wait(r, 0)
		if err != nil && !errors.Is(err, workflow.ErrTimeout) {
			return "", err
		}
		if err := lines.Append(r, "got "+got); err != nil {
			return "", err
		}
		k.at("end")
		return got, nil
	})
	end := k.gate("end")
	k.open(f)
	h := start(k, f, "1", 0)
	<-end.reached
	say(k, h.Run(), "late", "")
	close(end.open)
	returns(k, h, "")
	require.Equal(t, []string{"got "}, linesOf(k, h.Run()))
	require.Equal(t, 1, k.info(h.Run()).Unread)
}

// Rule: an export has the streams of a run, and an import stores them. What no engine wrote is refused. Once the run is
// removed, nothing of its streams is left.
func (suite) StreamsTravel(t *testing.T, k *kit) {
	f := tale()
	k.open(f)
	h := start(k, f, "1", 1)
	returns(k, h, 0)
	want := linesOf(k, h.Run())
	require.Len(t, want, 5)
	all, err := k.e.Rows(t.Context(), h.Run(), "")
	require.NoError(t, err)
	require.True(t, all.Last())
	accepts := func(change func(rows []workflow.Row) []workflow.Row) error {
		other := all
		other.Rows = change(append([]workflow.Row(nil), all.Rows...))
		other.All = len(other.Rows)
		var c workflow.RowsCheck
		_, err := c.Add(&other)
		return err
	}
	require.NoError(t, accepts(func(rows []workflow.Row) []workflow.Row { return rows }))
	changed := 0
	for i, row := range all.Rows {
		if row.In != "streams" && row.In != "items" {
			continue
		}
		changed++
		with := func(key, value []byte) error {
			return accepts(func(rows []workflow.Row) []workflow.Row {
				rows[i].Key, rows[i].Value = key, value
				return rows
			})
		}
		require.ErrorIs(t, with(row.Key, []byte{0xc0}), pawl.ErrInvalid)
		require.ErrorIs(t, with([]byte("_"), row.Value), pawl.ErrInvalid)
		require.ErrorIs(t, accepts(func(rows []workflow.Row) []workflow.Row { return append(rows[:i:i], rows[i+1:]...) }), pawl.ErrInvalid)
	}
	require.Equal(t, 6, changed)

	_, err = k.e.Prune(t.Context(), k.now().Add(time.Hour), nil)
	require.NoError(t, err)
	counts, _ := k.rowsOf(h.Run())
	require.Empty(t, counts)
	require.NoError(t, k.e.RestoreRows(t.Context(), &all))
	require.Equal(t, want, linesOf(k, h.Run()))
	require.NoError(t, k.e.Check(t.Context()))
}

// Rule: a fork has none of the items of the other run, and appends what its own calls append.
func (suite) StreamOfAFork(t *testing.T, k *kit) {
	f := workflow.Define("forked", func(r *workflow.Run, _ int) (int, error) {
		for _, name := range []string{"a", "b"} {
			if err := lines.Append(r, "before "+name); err != nil {
				return 0, err
			}
			if _, err := act(k, r, name, 0); err != nil {
				return 0, err
			}
		}
		return 0, lines.Append(r, "end")
	})
	k.open(f)
	h := start(k, f, "1", 0)
	returns(k, h, 0)
	fork, err := k.e.Fork(t.Context(), h.Run(), "b", "2")
	require.NoError(t, err)
	returns(k, find(k, f, "2"), 0)
	require.Equal(t, []string{"before b", "end"}, linesOf(k, fork))
	require.Equal(t, []string{"before a", "before b", "end"}, linesOf(k, h.Run()))
}

// Rule: a check finds a stream without its row, and one whose items are missing or too many.
func (suite) DamagedStreams(t *testing.T, k *kit) {
	f := tale()
	k.open(f)
	h := start(k, f, "1", 1)
	returns(k, h, 0)
	run := h.Run()
	row := append(run[:], "lines"...)
	item := func(n byte) []byte { return append(append(run[:], "lines\x00"...), 0, 0, 0, 0, 0, 0, 0, n) }
	for name, c := range map[string]struct {
		table string
		key   []byte
		found string
	}{
		"no row":    {"streams", row, "has items and no row"},
		"no first":  {"items", item(1), "and its row says 1 to 5"},
		"no middle": {"items", item(3), "and its row says 1 to 5"},
		"no last":   {"items", item(5), "and its row says 1 to 5"},
	} {
		table := tableNamed(c.table)
		var was []byte
		require.NoError(t, k.q.ViewRows(t.Context(), func(tx driver.Reader) error {
			value, err := tx.Get(table, c.key)
			was = append(was, value...)
			return err
		}), name)
		k.mutate(func(w driver.Writer) error { return w.Delete(table, c.key) })
		require.ErrorContains(t, k.e.Check(t.Context()), c.found, name)
		k.mutate(func(w driver.Writer) error { return w.Put(table, c.key, was) })
		require.NoError(t, k.e.Check(t.Context()), name)
	}
	table := tableNamed("items")
	k.mutate(func(w driver.Writer) error { return w.Put(table, item(6), driver.Seal(table, item(6), []byte{0xc0})) })
	require.ErrorContains(t, k.e.Check(t.Context()), "1 to 6 of")
	k.mutate(func(w driver.Writer) error { return w.Delete(table, item(6)) })
}
