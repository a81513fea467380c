package bolt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/withid"
)

// openTest opens a queue in a folder of the test. At the end of the test it closes the queue
// and checks its file, so that no test leaves an inconsistent file unnoticed.
func openTest(t *testing.T, opts *Options) *Queue {
	t.Helper()
	return openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), opts)
}

// openAt is openTest for a file that an earlier queue of the test may have left.
func openAt(t *testing.T, path string, opts *Options) *Queue {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Lease == 0 {
		o.Lease = busy.Lease()
	}
	q, err := Open(path, &o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, q.Close())
		checkFile(t, path)
	})
	return q
}

// checkFile requires that the file at path keeps every invariant of its format.
func checkFile(t testing.TB, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return fmt.Errorf("bbolt: %w", err)
		}
		s, err := openStore(tx)
		if err != nil {
			return err
		}
		return s.violations(context.Background())
	}))
}

// add enqueues a job of kind "k" and returns it.
func add(t *testing.T, q *Queue, change func(*pawl.Envelope)) *pawl.Envelope {
	t.Helper()
	e := &pawl.Envelope{Kind: "k", MaxRetries: 3, Payload: []byte("payload")}
	if change != nil {
		change(e)
	}
	require.NoError(t, withid.Enqueue(context.Background(), q, e))
	return e
}

// fetch leases up to n jobs, including jobs that must start immediately, and does not wait.
func fetch(t *testing.T, q *Queue, n int, queues ...string) []*pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(context.Background(), pawl.Request{Queues: queues, Max: n, Wait: pawl.WaitNot})
	if errors.Is(err, pawl.ErrEmpty) {
		return nil
	}
	require.NoError(t, err)
	return leases
}

// find reads a job, or returns nil if it is gone.
func find(t *testing.T, q *Queue, id pawl.ID) *pawl.Envelope {
	t.Helper()
	e, err := q.Job(context.Background(), id)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	require.NoError(t, err)
	return e
}

// countsOf returns the counts of one queue.
func countsOf(t *testing.T, q *Queue, name string) pawl.Counts {
	t.Helper()
	stats, err := q.Stats(context.Background())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		if row.Name == name {
			return row.Counts
		}
	}
	return pawl.Counts{}
}

// leaseOne leases the only job that may be fetched now.
func leaseOne(t *testing.T, q *Queue, queues ...string) *pawl.Lease {
	t.Helper()
	leases := fetch(t, q, 2, queues...)
	require.Len(t, leases, 1)
	return leases[0]
}

// kindsOf returns the kinds of leases, in order.
func kindsOf(leases []*pawl.Lease) string {
	var kinds []byte
	for _, l := range leases {
		kinds = append(kinds, l.Kind...)
	}
	return string(kinds)
}

// atOnce runs fn for every lease concurrently, so that the calls share commits.
func atOnce(t *testing.T, leases []*pawl.Lease, fn func(*pawl.Lease) error) {
	t.Helper()
	errs := make(chan error, len(leases))
	for _, l := range leases {
		go func() { errs <- fn(l) }()
	}
	for range leases {
		require.NoError(t, <-errs)
	}
}

// checkNow is checkFile for an open queue.
func checkNow(t *testing.T, q *Queue) {
	t.Helper()
	require.NoError(t, q.Check(context.Background())) // also in a cleanup, after the test's context has ended
}

// digest returns a checksum of every row of the file.
func digest(t *testing.T, q *Queue) string {
	t.Helper()
	h := sha256.New()
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			b := tx.Bucket(bucketRoot).Bucket(name)
			fmt.Fprintf(h, "%s %d\n", name, b.Sequence())
			_ = b.ForEach(func(k, v []byte) error {
				fmt.Fprintf(h, "%x %x\n", k, v)
				return nil
			})
		}
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// stepClock is a wall clock set by a test. Between two steps it advances.
type stepClock struct{ offset atomic.Int64 }

func (c *stepClock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())).Round(0) }

func (c *stepClock) step(d time.Duration) { c.offset.Add(int64(d)) }

// pass advances virtual time in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

// acksOf returns settlements for leases whose attempts succeeded.
func acksOf(leases []*pawl.Lease) []pawl.Settlement {
	acks := make([]pawl.Settlement, len(leases))
	for i, l := range leases {
		acks[i] = l.Ack()
	}
	return acks
}
