package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/worker"
)

var longJob = pawl.Define[string]("long", pawl.MaxRetries(0))

// logOf returns the lines of the log of each attempt of a job, as another process reads them.
func logOf(t *testing.T, q *postgres.Queue, id pawl.ID) (runs [][]string) {
	t.Helper()
	logs, err := admin.Of(q).Logs(t.Context(), id)
	require.NoError(t, err)
	for _, l := range logs {
		require.Zero(t, l.Dropped)
		runs = append(runs, strings.Split(strings.TrimSpace(l.Head+l.Tail), "\n"))
	}
	return runs
}

// Rule: whenever the process of a worker is killed, the progress and the log of its attempt are in the
// database, except those of the last second.
//
// A kill leaves what was committed, which is what another client reads.
func TestNotesUpToTheLastSecond(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		q, other := open(t, schema, virtual), open(t, schema, virtual)
		w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
		worker.Handle(w, longJob, func(ctx context.Context, job *pawl.Job[string]) error {
			for n := range int64(80) { // 8 s
				pawl.Log(ctx).Info("row", "n", n)
				job.Progress(n, 80, "")
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		stored, err := longJob.Enqueue(t.Context(), q, "")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		began := time.Now()
		for range 5 {
			time.Sleep(1350 * time.Millisecond)
			synctest.Wait()
			due := int(time.Since(began)/(100*time.Millisecond)) - 11 // noted more than a second ago
			require.Greater(t, len(logOf(t, other, stored.ID)[0]), due)
			all, err := admin.Of(other).Progress(t.Context(), stored.ID)
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.GreaterOrEqual(t, int(all[0].Done), due)
		}
		time.Sleep(5 * time.Second)
		logs, err := driver.NotesOf(other).ReadLogs(t.Context(), stored.ID)
		require.NoError(t, err)
		require.Empty(t, logs, "they go with the job")
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestNotingProcess runs a job that logs without an end, when it is a child process of TestLogOfAKilledProcess.
func TestNotingProcess(t *testing.T) {
	schema := os.Getenv(schemaOfParent)
	if schema == "" {
		t.Skip("it is the child process of another test")
	}
	q := open(t, schema, func(o *postgres.Options) { o.Owner = "noting" })
	w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	worker.Handle(w, longJob, func(ctx context.Context, job *pawl.Job[string]) error {
		for n := int64(0); ctx.Err() == nil; n++ {
			pawl.Log(ctx).Info("row", "n", n)
			job.Progress(n, 0, job.Args)
			if n == 0 {
				fmt.Println("noted")
			}
			time.Sleep(50 * time.Millisecond)
		}
		return ctx.Err()
	})
	require.NoError(t, w.Run(t.Context()))
}

// Rule: what an attempt had logged before its process was killed stays, and the next attempt has its own log.
func TestLogOfAKilledProcess(t *testing.T) {
	for i := range kills.Count(t, 1) {
		t.Run(fmt.Sprint(i), killNotingProcess) // each closes its queues
	}
}

func killNotingProcess(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema)
	stored, err := longJob.Enqueue(t.Context(), q, "x")
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNotingProcess$")
	child.Env = append(os.Environ(), serverOfParent+"="+server.url, schemaOfParent+"="+schema)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "noted", lines.Text())
	var before [][]string
	for ctx := patient(t); len(before) == 0; time.Sleep(10 * time.Millisecond) {
		require.NoError(t, ctx.Err())
		before = logOf(t, q, stored.ID)
	}
	require.NoError(t, child.Process.Kill())
	_, _ = io.Copy(io.Discard, out)
	require.Error(t, child.Wait())

	after := open(t, schema, func(o *postgres.Options) { o.Owner = "noting" })
	w := worker.New(after, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	worker.Handle(w, longJob, func(ctx context.Context, job *pawl.Job[string]) error {
		pawl.Log(ctx).Info("again", "crashes", job.Crashes)
		return pawl.Permanent(io.ErrUnexpectedEOF)
	})
	require.NoError(t, w.Drain(patient(t), pawl.WaitFinished))
	logs := logOf(t, after, stored.ID)
	require.Len(t, logs, 2)
	require.Equal(t, before[0], logs[0][:len(before[0])])
	require.Len(t, logs[1], 1)
	require.Contains(t, logs[1][0], "msg=again crashes=1")
}

// Rule: an open transaction of the app that has acked a job delays no notes of that job, and they are removed
// once it is committed.
func TestNotesBesideAnOpenTransaction(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		l := lease(t, q, &pawl.Envelope{Kind: "k"})
		l.Started = time.Now()
		notes := driver.NewNotes(q)
		note := func(done int64) {
			ctx := driver.RunContext(t.Context(), q, l, notes)
			(&pawl.Job[string]{Envelope: l.Envelope, Lease: l}).Progress(done, 0, "")
			pawl.Log(ctx).Info("row")
			_, err := notes.Store(patient(t))
			require.NoError(t, err)
		}
		tx := begin()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		note(1)
		require.Len(t, logOf(t, q, l.ID), 1)
		require.NoError(t, tx.commit())
		note(2)
		stored, err := q.ReadProgress(t.Context(), l.ID)
		require.NoError(t, err)
		require.Empty(t, stored)
		logs, err := q.ReadLogs(t.Context(), l.ID)
		require.NoError(t, err)
		require.Empty(t, logs)
	})
}
