package worker_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// Rule: with the default options a stop ends within 9 s, since containers are killed after
// 10 s, and it loses nothing: however often a job is interrupted by one, it counts neither a
// crash nor an attempt, and runs to its end when it gets the time.
func TestDeploysAmidALongJob(t *testing.T) {
	for name, work := range map[string]func(ctx context.Context) error{
		"that ends with its context": func(ctx context.Context) error {
			select {
			case <-time.After(30 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		"that ignores its context": func(context.Context) error {
			<-time.After(30 * time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, path := open(t)
				id := enqueue(t, q, "a")
				var log logbook
				for range 5 {
					w := worker.New(q, &worker.Options{Logger: log.from(hclog.Info)})
					worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error { return work(ctx) })
					stop := start(t, w)
					synctest.Wait()
					require.Equal(t, pawl.Leased, stored(t, q, id).State)
					began := time.Now()
					require.NoError(t, stop())
					require.Less(t, time.Since(began), 9*time.Second)
					requireReleased(t, q, id)
					require.NoError(t, q.Close())
					q = reopenLogging(t, path, &log)
				}
				<-time.After(time.Minute) // handlers that were left behind return
				handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error { return work(t.Context()) })
				requireDone(t, q, id)
				require.NotContains(t, log.String(), "crash")
				require.NotContains(t, log.String(), "recovered")
				require.Equal(t, 5, strings.Count(log.String(), "[INFO]  drain begun: jobs=1 limit=4s"))
				require.Len(t, regexp.MustCompile(`drain ended: took=(4|7)s unfinished=1`).FindAllString(log.String(), -1), 5)
			})
		})
	}
}

func reopenLogging(t *testing.T, path string, log *logbook) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: log.from(hclog.Info)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// Rule: a stop with nothing to wait for says nothing.
func TestIdleStopIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var log logbook
		w := newWorker(q, worker.Options{Logger: log.from(hclog.Info)})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		stop := start(t, w)
		synctest.Wait()
		require.NoError(t, stop())
		require.Empty(t, log.String())
	})
}
