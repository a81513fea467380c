package bolt

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/kills"
)

// notesRole runs a job, which is there already, and notes its progress and logs as a worker does. It
// prints the number of each line once a store of it is acknowledged.
func notesRole(args []string) error {
	q, err := Open(args[0], crashOptions())
	if err != nil {
		return err
	}
	ctx := context.Background()
	leases, err := q.Fetch(ctx, pawl.Request{Max: 1})
	if err != nil {
		return err
	}
	l := leases[0]
	l.Started = time.Now()
	notes := driver.NewNotes(q)
	ctx = driver.RunContext(ctx, q, l, notes)
	job := &pawl.Job[string]{Envelope: l.Envelope, Lease: l}
	kills.Say("up", l.Started.UnixNano())
	for n := int64(1); ; n++ {
		pawl.Log(ctx).Info("line", "n", n)
		job.Progress(n, 0, "")
		if _, err := notes.Store(ctx); err != nil {
			return err
		}
		kills.Say("stored", n)
	}
}

var lineNumber = regexp.MustCompile(`msg=line n=(\d+)\n$`)

// Rule: whenever the process is killed, the log and the progress of its attempt are there, with everything whose
// store was acknowledged, and the file is in order.
func TestKilledWithNotes(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, crashOptions())
	stored, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.NoError(t, err)
	id := stored[0].ID
	require.NoError(t, q.Close())
	total := int64(0)
	for kill := range kills.Count(t, 4) {
		c := kills.Start(t, "notes", path)
		var began int64
		_, err := fmt.Sscanf(c.Line(t), "up %d", &began)
		require.NoError(t, err)
		said := c.After(t, 40)
		require.Empty(t, c.Stderr.String())
		acked := int64(len(said))
		total += acked

		q := openAt(t, path, crashOptions())
		require.NoError(t, q.Check(t.Context()))
		logs, err := driver.NotesOf(q).ReadLogs(t.Context(), id)
		require.NoError(t, err)
		progress, err := driver.NotesOf(q).ReadProgress(t.Context(), id)
		require.NoError(t, err)
		if acked > 0 {
			last := logs[len(logs)-1]
			require.Equal(t, began, last.Began.UnixNano())
			require.LessOrEqual(t, len(logs), kill+1)
			found := lineNumber.FindStringSubmatch(last.Head + last.Tail)
			require.NotNil(t, found, "the last line is whole")
			n, err := strconv.ParseInt(found[1], 10, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, acked)
			require.Equal(t, n, progress[id].Done)
		}
		require.NoError(t, q.Close())
	}
	t.Logf("%d acknowledged stores", total)
}

// Rule: Check finds a damaged note or count. A salvage keeps the sound ones, and those alone.
func TestCheckOfNotes(t *testing.T) {
	folder := memoryFolder(t)
	path := filepath.Join(folder, "jobs.db")
	q, err := Open(path, crashOptions()) // without the check of the file at the end
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.NoError(t, err)
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	l := leases[0]
	l.Started = time.Now()
	notes := driver.NewNotes(q)
	ctx := driver.RunContext(t.Context(), q, l, notes)
	pawl.Log(ctx).Info("line")
	(&pawl.Job[string]{Envelope: l.Envelope, Lease: l}).Progress(1, 2, "")
	_, err = notes.Store(ctx)
	require.NoError(t, err)
	require.NoError(t, q.Check(ctx))
	require.NoError(t, q.Close())
	to := filepath.Join(folder, "to.db")
	_, err = Salvage(t.Context(), path, to)
	require.NoError(t, err)
	q = openAt(t, to, crashOptions())
	logs, err := driver.NotesOf(q).ReadLogs(t.Context(), l.ID)
	require.NoError(t, err)
	require.Len(t, logs, 1)
	progress, err := driver.NotesOf(q).ReadProgress(t.Context(), l.ID)
	require.NoError(t, err)
	require.Equal(t, "1/2 50%", progress[l.ID].String())
	require.NoError(t, q.Close())

	for _, c := range []struct{ space, table string }{{"pawl.notes", "progress"}, {"pawl.notes", "logs"}, {"pawl.throughput", "counts"}} {
		q, err := Open(path, crashOptions())
		require.NoError(t, err)
		flip := func() {
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				b := tx.Bucket([]byte(c.space)).Bucket([]byte(c.table))
				k, v := b.Cursor().First()
				v = bytes.Clone(v)
				v[len(v)-1] ^= 1
				return b.Put(k, v)
			}))
		}
		flip()
		require.ErrorContains(t, q.Check(t.Context()), "table "+c.table+" of "+c.space)
		require.NoError(t, q.Close())
		to := filepath.Join(folder, c.table+".db")
		result, err := Salvage(t.Context(), path, to)
		require.NoError(t, err)
		require.Equal(t, 1, result.AppLost)
		openAt(t, to, crashOptions()) // checks the file at the end
		q, err = Open(path, crashOptions())
		require.NoError(t, err)
		flip()
		require.NoError(t, q.Check(t.Context()))
		require.NoError(t, q.Close())
	}
}
