package workflow

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// inTx is a source that reads one transaction, in which every job waits.
type inTx struct{ tx driver.Reader }

func (s inTx) ViewRows(_ context.Context, fn func(driver.Reader) error) error { return fn(s.tx) }

func (s inTx) Job(_ context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return &pawl.Envelope{ID: id, State: pawl.Delayed}, nil
}

// FuzzRows looks for a row that panics in a reader, or whose meaning changes when it is
// rewritten. It tries the bytes unchanged, and under a correct checksum, which no fuzzer finds.
// Behind is the rest of the key after the run.
func FuzzRows(f *testing.F) {
	run, now := pawl.ID{1, 2, 3}, time.Unix(1_900_000_000, 7)
	sound := &runRow{Flow: "note", ID: "a", Status: Waiting, Build: "1", Queue: "paper", Created: 1, Retain: 2,
		Fingerprint: []byte{1}, Due: 3, Waits: []string{"news"}, Steps: 4, Signals: 5, Unread: 6, Cancel: "why",
		Chain: []errorText{{Type: "*t", Text: "x"}}, Parent: pawl.ID{4}, OutputBytes: -1}
	number := map[string]uint8{}
	for i, table := range space.Tables() {
		number[table.String()] = uint8(i)
	}
	add := func(table *driver.Table, behind []byte, v any) {
		content, ok := v.([]byte)
		if !ok {
			var err error
			content, err = driver.EncodePayload(v)
			require.NoError(f, err)
		}
		f.Add(number[table.String()], behind, content, true)
		f.Add(number[table.String()], behind, driver.Seal(table, append(run[:], behind...), content), false)
	}
	add(tableRuns, nil, sound)
	ended := *sound
	ended.Status, ended.Ended, ended.Retain = Done, 1, 1
	add(tableRuns, nil, &ended)
	short := ended
	short.Input, short.Output = []byte{0xc0}, []byte{0xc0}
	add(tableRuns, nil, &short)
	for i, e := range forked() {
		if len(e.Result) > maxInline {
			e.Result, e.Apart = nil, true
		}
		add(tableSteps, seqKey(run, uint32(i))[16:], e)
	}
	add(tableBlobs, seqKey(run, inputSeq)[16:], []byte{0xc0})
	add(tableBlobs, seqKey(run, outputSeq)[16:], []byte{0xc0})
	add(tableSignals, signalKey(run, "news", 1)[16:], []byte{0xc0})
	add(tableSeen, []byte("order/1"), []byte("1"))
	add(tableAnswers, answerKey(run, 1)[16:], &answer{Failed: true, Error: "no"})
	add(tablePublished, []byte("percent"), []byte{40})
	add(tableStreams, []byte("lines"), &streamRow{First: 2, Last: 2, Bytes: 40})
	add(tableItems, signalKey(run, "lines", 2)[16:], &itemRow{Value: []byte{0xc0}, At: 1, Step: "read", Attempt: 1})
	add(tableBlocked, nil, []byte("1"))
	add(tableIDs, []byte("a"), run[:])
	add(tableEnded, endedKey(now, run)[8:], []byte{})

	q, err := bolt.Open(filepath.Join(f.TempDir(), "rows.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, q.Close()) })
	f.Fuzz(func(t *testing.T, bucket uint8, behind, content []byte, sealed bool) {
		undone := errors.New("undone")
		try := func(r rows) error {
			require.NoError(t, r.putRun(run, sound))
			require.NoError(t, r.put(tableIDs, idKey("note", "a"), run[:]))
			require.NoError(t, r.put(tableBlobs, seqKey(run, inputSeq), []byte{1}))

			name := space.Tables()[int(bucket)%len(space.Tables())]
			key := append(run[:], behind[:min(len(behind), 1<<10)]...)
			if sealed {
				require.NoError(t, r.put(name, key, content))
			} else {
				require.NoError(t, r.w.Put(name, key, content))
			}
			readAll(t, Read(inTx{r}), run)
			writtenAgain(t, r, run)

			all, err := r.entries(run, 0)
			if err == nil {
				_, _ = before(all, "ship")
				_ = new(fork).copy(r, run, "ship")
			}
			for range 3 {
				_ = (&sweep{rows: r, left: quota{rows: 50, bytes: 1 << 20}}).until(now)
			}
			readAll(t, Read(inTx{r}), run)
			return undone
		}
		require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.MutateTx(tx, byHand{apply: try}) }), undone)
	})
}

// readAll reads everything about a run. Errors are allowed.
func readAll(t *testing.T, r *Reader, run pawl.ID) {
	ctx := t.Context()
	_, _ = r.Find(ctx, "note", "a")
	_, _ = r.Info(ctx, run)
	_, _ = r.Journal(ctx, run, true)
	_, _ = r.Input(ctx, run)
	_, _ = r.Output(ctx, run)
	_, _ = r.Signals(ctx, run)
	_, _ = r.Published(ctx, run)
	_, _ = r.Streams(ctx, run)
	_, _ = r.Items(ctx, run, "lines", 0, 10)
	for after, parts := "", 0; ; parts++ {
		l, err := r.List(ctx, Filter{}, after, 1)
		require.NoError(t, err, "damage is listed")
		require.Less(t, parts, 5, "a list ends")
		if after = l.Next; after == "" {
			break
		}
	}
}

// writtenAgain requires that readable rows are the same after they are written and read again.
func writtenAgain(t *testing.T, r rows, run pawl.ID) {
	if row, err := r.run(run); err == nil && row != nil {
		require.NoError(t, r.putRun(run, row))
		again, err := r.run(run)
		require.NoError(t, err)
		require.Equal(t, row, again)
	}
	all, err := r.entries(run, 0)
	if err != nil {
		return
	}
	for _, e := range all {
		result, err := r.value(run, e)
		if err != nil {
			continue
		}
		var j journal
		j.add(run, e)
		require.NoError(t, j.apply(r))
		again, err := r.entry(run, e.seq)
		require.NoError(t, err)
		b, err := r.value(run, again)
		require.NoError(t, err)
		require.Equal(t, result, b)
		again.Result, again.Apart = e.Result, e.Apart // the result may now be stored apart
		require.Equal(t, e, again)
	}
}
