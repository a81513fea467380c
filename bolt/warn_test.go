package bolt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// logLines is a log that can be waited for.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func warnings() (lines logLines, o *Options) {
	lines = make(logLines, 100)
	return lines, &Options{Logger: hclog.New(&hclog.LoggerOptions{Output: lines, Level: hclog.Warn})}
}

// requireWarning takes the only line of a log.
func requireWarning(t *testing.T, lines logLines, about string) {
	t.Helper()
	require.Len(t, lines, 1)
	line := <-lines
	require.Contains(t, line, "[WARN]")
	require.Contains(t, line, about)
	require.Contains(t, line, "only EnqueueTx, AckTx, CancelTx and MutateTx may be called", "the likeliest cause")
}

// plainCalls are the calls that wait for the writer, so that a function of Update waits for
// itself.
func plainCalls() map[string]func(context.Context, *Queue, *pawl.Lease) error {
	calls := map[string]func(context.Context, *Queue, *pawl.Lease) error{
		"cancel": func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Cancel(ctx, l.ID) },
		"update": func(ctx context.Context, q *Queue, _ *pawl.Lease) error {
			return q.Update(ctx, func(*bbolt.Tx) error { panic("an update within an update") })
		},
	}
	for _, op := range operations {
		calls[op.name] = op.do
	}
	return calls
}

// A plain call inside the function waits for the end of the function itself. It ends with its
// context, and a warning says what is wrong.
func TestPlainCallInsideAnUpdateIsWarnedOf(t *testing.T) {
	for name, call := range plainCalls() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines, o := warnings()
				o.Lease = time.Hour
				q := openTest(t, o)
				add(t, q, nil)
				l := leaseOne(t, q)
				dead := add(t, q, func(e *pawl.Envelope) { e.Queue = "dead" })
				require.NoError(t, q.Cancel(t.Context(), dead.ID)) // for retry
				<-lines

				for range 2 { // each transaction has its own warning
					inTx(t, q, nil, func(*bbolt.Tx) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						waited := started(func() error { return call(ctx, q, l) })
						pass(time.Second - 1)
						synctest.Wait()
						require.Empty(t, lines, "not at once")
						pass(1)
						synctest.Wait()
						requireWarning(t, lines, "a function of Update keeps callers waiting")
						err := <-waited
						require.ErrorIs(t, err, pawl.ErrNotAccepted)
						require.ErrorIs(t, err, context.DeadlineExceeded)
						require.Empty(t, lines, "once for one transaction")
					})
				}
				require.Equal(t, pawl.Counts{Leased: 1}, countsOf(t, q, pawl.DefaultQueue), "none of them took effect")
				require.NoError(t, q.Settle(t.Context(), l.Ack()))
			})
		})
	}
}

// A function that makes its first such call after it has run for long is warned about as well.
func TestLatePlainCallIsWarnedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, o := warnings()
		q := openTest(t, o)
		inTx(t, q, nil, func(*bbolt.Tx) {
			pass(90 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			require.ErrorIs(t, withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k"}), pawl.ErrNotAccepted)
		})
		requireWarning(t, lines, "a function of Update keeps callers waiting")
	})
}

// A caller that waits for another caller's function is a reason to warn, too, whatever becomes
// of it.
func TestSlowUpdateIsWarnedOf(t *testing.T) {
	for _, end := range []error{nil, errRolledBack} {
		synctest.Test(t, func(t *testing.T) {
			lines, o := warnings()
			q := openTest(t, o)
			var enqueued <-chan error
			inTx(t, q, end, func(*bbolt.Tx) {
				enqueued = started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) })
				pass(time.Hour)
			})
			require.NoError(t, <-enqueued)
			requireWarning(t, lines, "calls=1")
		})
	}
}

// A function may take its time while no call waits for it. Fetches that wait for jobs,
// withdrawn calls, its own verbs and readers do not count.
func TestNoWarningWhereNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, o := warnings()
		q := openTest(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		fetching := started(func() error { _, err := q.Fetch(ctx, pawl.Request{Max: 1, Queues: []string{"empty"}}); return err })
		synctest.Wait()
		inTx(t, q, nil, func(tx *bbolt.Tx) {
			short, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			require.ErrorIs(t, withid.Enqueue(short, q, &pawl.Envelope{Kind: "k"}), pawl.ErrNotAccepted)
			short, cancel = context.WithTimeout(t.Context(), time.Second/3)
			defer cancel()
			_, err := q.Fetch(short, pawl.Request{Max: 1})
			require.ErrorIs(t, err, pawl.ErrNotAccepted)
			require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k"}))
			pass(time.Hour)
			require.Zero(t, countsOf(t, q, pawl.DefaultQueue))
		})
		inTx(t, q, errRolledBack, func(*bbolt.Tx) { pass(time.Second - 1) })
		pass(time.Hour)
		synctest.Wait()
		require.Empty(t, lines)
		cancel()
		require.ErrorIs(t, <-fetching, pawl.ErrNotAccepted)
	})
}

// Over an app's database the queue waits for the app's own transactions. A plain call inside
// one is warned about as well, in real time: the wait is for a lock.
func TestPlainCallInsideATransactionOfTheAppsIsWarnedOf(t *testing.T) {
	t.Parallel()
	lines, o := warnings()
	db := openApp(t)
	q := openOver(t, db, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	var enqueued <-chan error
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		enqueued = started(func() error { return withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k"}) })
		lines <- <-lines // when it arrives
		requireWarning(t, lines, "the queue waits for a transaction of the app's")
		require.GreaterOrEqual(t, time.Since(start), time.Second)
		cancel()
		return appPut(tx, "row")
	}))
	if err := <-enqueued; err != nil && !errors.Is(err, pawl.ErrNotAccepted) {
		t.Fatal(err)
	}
	require.Empty(t, lines)
	add(t, q, nil)
	require.Equal(t, []string{"row"}, appRows(t, db))
}
