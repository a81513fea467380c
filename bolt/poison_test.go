package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/withid"
)

// replaceCommit replaces the commit function of an active queue.
func replaceCommit(t *testing.T, q *Queue, commit func(*bbolt.Tx) error) {
	t.Helper()
	require.NoError(t, q.do(t.Context(), visit(func() { q.scheduler.commitTx = commit })))
}

// visit is an operation that runs a function on the scheduler's goroutine, which owns what the
// function changes, and does not change the file.
type visit func()

func (fn visit) check(*txn) error { fn(); return nil }
func (visit) apply(*txn)          {}

// The two ways in which the sync of a commit fails: its writes are in the file when the file is
// opened again, or they are not.
var failedSyncs = []struct {
	rule    string
	visible bool
	commit  func(*bbolt.Tx) error
}{
	{"the commit is in the file", true, func(tx *bbolt.Tx) error {
		if err := tx.Commit(); err != nil {
			panic(err)
		}
		return syscall.EIO
	}},
	{"the commit is not in the file", false, func(tx *bbolt.Tx) error {
		if err := tx.Rollback(); err != nil {
			panic(err)
		}
		return syscall.EIO
	}},
	{"the file could not grow for certain", false, func(*bbolt.Tx) error {
		return fmt.Errorf("file sync error: %s", syscall.EIO) // with bbolt's text
	}},
}

// A failed sync leaves the outcome of its commit unknown and ends the work of the queue: calls
// in that commit get ErrUnknownOutcome, and all others get ErrPoisoned.
func TestFailedSyncPoisons(t *testing.T) {
	for _, test := range failedSyncs {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			var shared []*pawl.Envelope
			synctest.Test(t, func(t *testing.T) {
				q, err := Open(path, quiet())
				require.NoError(t, err)
				ctx := t.Context()
				held := add(t, q, func(e *pawl.Envelope) { e.Kind = "held" })
				l := leaseOne(t, q)
				enqueue := func(kind string) (*pawl.Envelope, <-chan error) {
					e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: kind, Queue: "other"}
					return e, started(func() error { return withid.Enqueue(ctx, q, e) })
				}

				waiting := started(func() error {
					_, err := q.Fetch(ctx, pawl.Request{Max: 1, Queues: []string{"empty"}})
					return err
				})
				commits := make(chan func(*bbolt.Tx) error)
				replaceCommit(t, q, func(tx *bbolt.Tx) error { return (<-commits)(tx) })
				before, beforeErr := enqueue("before")
				synctest.Wait()
				one, oneErr := enqueue("one")
				two, twoErr := enqueue("two")
				served := started(func() error {
					_, err := q.Fetch(ctx, pawl.Request{Max: 9, Queues: []string{"other"}})
					return err
				})
				synctest.Wait()
				commits <- (*bbolt.Tx).Commit
				synctest.Wait()
				require.NoError(t, <-beforeErr)
				_, lateErr := enqueue("late") // the others have been accepted, and this has not
				synctest.Wait()
				commits <- test.commit
				shared = []*pawl.Envelope{before, one, two}

				require.ErrorIs(t, <-oneErr, pawl.ErrUnknownOutcome)
				require.ErrorIs(t, <-twoErr, pawl.ErrUnknownOutcome)
				require.ErrorIs(t, <-served, pawl.ErrUnknownOutcome)
				require.ErrorIs(t, <-lateErr, pawl.ErrPoisoned)
				err = <-waiting
				require.ErrorIs(t, err, pawl.ErrPoisoned)
				require.ErrorContains(t, err, "input/output error", "the cause is named")
				for _, op := range operations {
					if op.name != "retry" { // it reads first
						require.ErrorIs(t, op.do(ctx, q, l), pawl.ErrPoisoned, op.name)
					}
				}
				require.ErrorIs(t, q.Retry(ctx, held.ID, false), pawl.ErrPoisoned)
				require.NoError(t, q.Close())
			})

			q := openAt(t, path, nil)
			require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, "other"), "the commit is taken back, even when it can be seen")
			for i, e := range shared {
				require.Equal(t, i == 0, find(t, q, e.ID) != nil)
			}
			require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue), "the lease of before")
		})
	}
}

// Close writes nothing after a failed sync, even if it was called before.
func TestCloseBehindAFailedSync(t *testing.T) {
	for _, test := range failedSyncs {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "jobs.db")
				q, err := Open(path, quiet())
				require.NoError(t, err)
				commits := make(chan func(*bbolt.Tx) error)
				replaceCommit(t, q, func(tx *bbolt.Tx) error { return (<-commits)(tx) })
				enqueued := started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) })
				synctest.Wait()
				closed := started(q.Close)
				synctest.Wait()
				var after []byte
				commits <- func(tx *bbolt.Tx) error {
					err := test.commit(tx)
					after, _ = os.ReadFile(path)
					return err
				}
				require.ErrorIs(t, <-enqueued, pawl.ErrUnknownOutcome)
				require.NoError(t, <-closed)
				now, err := os.ReadFile(path)
				require.NoError(t, err)
				require.True(t, string(after) == string(now), "Close wrote to the file")
				checkFile(t, path)
			})
		})
	}
}

// The ways in which a disk refuses a write before anything counts.
var refusals = []error{
	&fs.PathError{Op: "write", Path: "jobs.db", Err: syscall.ENOSPC},
	&fs.PathError{Op: "write", Path: "jobs.db", Err: syscall.EIO},
	&fs.PathError{Op: "write", Path: "jobs.db", Err: syscall.EDQUOT},
	fmt.Errorf("file resize error: %s", syscall.EFBIG), // with bbolt's text
	berrors.ErrMaxSizeReached,
}

// If a commit does not fit on the disk, only the operations that do not fit by themselves fail.
func TestFullDiskFailsWhatDoesNotFit(t *testing.T) {
	for _, refusal := range refusals {
		t.Run(refusal.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				ctx := t.Context()
				g := gateCommits(q)
				add(t, q, nil)
				l := leaseOne(t, q)
				large := pawl.NewID(time.Now())
				refuse := func(tx *bbolt.Tx) error {
					if tx.Bucket(bucketRoot).Bucket(bucketJobs).Get(large[:]) != nil {
						return refusal
					}
					return tx.Commit()
				}

				release := g.occupy(q)
				var fetched []*pawl.Lease
				fetching := started(func() (err error) {
					fetched, err = q.Fetch(ctx, pawl.Request{Max: 9})
					return err
				})
				replaced := started(func() error {
					return q.do(ctx, visit(func() { q.scheduler.commitTx = refuse }))
				})
				enqueue := func(id pawl.ID) <-chan error {
					e := &pawl.Envelope{ID: id, Kind: "k"}
					if id == large {
						e.Payload = make([]byte, 100)
					}
					return started(func() error { return withid.Enqueue(ctx, q, e) })
				}
				small, another := pawl.NewID(time.Now()), pawl.NewID(time.Now())
				smallErr, largeErr, anotherErr := enqueue(small), enqueue(large), enqueue(another)
				acked := started(func() error { return q.Settle(ctx, l.Ack()) })
				synctest.Wait()
				release()

				require.NoError(t, <-replaced)
				err := <-largeErr
				require.ErrorIs(t, err, ErrDisk)
				require.ErrorContains(t, err, refusal.Error(), "the cause is named")
				require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
				require.NoError(t, <-smallErr)
				require.NoError(t, <-anotherErr)
				require.NoError(t, <-acked)
				require.NoError(t, <-fetching)
				require.NotEmpty(t, fetched)
				for _, l := range fetched {
					require.NoError(t, q.Settle(ctx, l.Ack()), "the lease that was answered is the one in the file")
				}
				require.Nil(t, find(t, q, large))

				require.ErrorIs(t, <-enqueue(large), ErrDisk, "alone in its group it fails as well")
				replaceCommit(t, q, (*bbolt.Tx).Commit)
				require.NoError(t, <-enqueue(large))
				require.NotNil(t, find(t, q, large))
			})
		})
	}
}

// A fetch that would have received a job that then did not fit on the disk can no longer be
// withdrawn. It is answered, whatever else there is to fetch.
func TestFetchOfWhatDidNotFitIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		replaceCommit(t, q, func(*bbolt.Tx) error { return refusals[0] })
		ctx, cancel := context.WithCancel(t.Context())
		fetching := started(func() error {
			_, err := q.Fetch(ctx, pawl.Request{Max: 1})
			return err
		})
		synctest.Wait()
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), ErrDisk)
		cancel()
		require.ErrorIs(t, <-fetching, ErrDisk)
		replaceCommit(t, q, (*bbolt.Tx).Commit)
	})
}

// While due jobs cannot be moved, it is unknown whether there is a job: a fetch that does not
// wait gets the reason, and a fetch that waits keeps waiting.
func TestHastyFetchReportsWhatKeepsTheQueue(t *testing.T) {
	for _, wait := range []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished, pawl.WaitForJob} {
		t.Run(fmt.Sprintf("wait %d", wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				batch := newBatch(2 * promotePortion)
				for _, e := range batch {
					e.Queue, e.Delay = "busy", time.Second
				}
				require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
				replaceCommit(t, q, func(*bbolt.Tx) error { return refusals[0] })
				pass(2 * time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // it is retried once a second
				defer cancel()
				_, err := q.Fetch(ctx, pawl.Request{Max: 1, Queues: []string{"quiet"}, Wait: wait})
				if wait == pawl.WaitForJob {
					require.ErrorIs(t, err, pawl.ErrNotAccepted)
				} else {
					require.ErrorIs(t, err, ErrDisk)
				}
				replaceCommit(t, q, (*bbolt.Tx).Commit)
			})
		})
	}
}

// While the disk is full, the queue retries due work once a second, and continues by itself
// when there is space.
func TestFullDiskIsTriedAgainInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, &Options{Lease: 2 * time.Second})
		due := add(t, q, func(e *pawl.Envelope) { e.Delay, e.Queue = 2*time.Second, "due" })
		expired := add(t, q, nil)
		leaseOne(t, q)
		tries := 0
		replaceCommit(t, q, func(*bbolt.Tx) error {
			if tries++; tries > 1000 {
				panic("the scheduler does not rest")
			}
			return refusals[0]
		})
		pass(12 * time.Second)
		synctest.Wait()
		require.Greater(t, tries, 5, "it does not give up")
		require.Less(t, tries, 40, "it rests in between")
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), ErrDisk, "it answers meanwhile")

		replaceCommit(t, q, (*bbolt.Tx).Commit)
		pass(time.Second)
		synctest.Wait()
		require.Equal(t, pawl.Ready, find(t, q, due.ID).State)
		require.Equal(t, pawl.Ready, find(t, q, expired.ID).State)
		require.Equal(t, 1, find(t, q, expired.ID).Crashes)
	})
}

// A panic during a transaction, caused by damaged pages, ends the work of the queue and not the
// process.
func TestPanicInATransactionPoisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		err := q.do(t.Context(), visit(func() { panic("page 7 is no page") }))
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorContains(t, err, "page 7 is no page")
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), pawl.ErrPoisoned)
	})
}

func TestRefusedByDisk(t *testing.T) {
	for _, err := range refusals {
		require.True(t, dbfile.RefusedByDisk(fmt.Errorf("commit: %w", err)), "%v", err)
	}
	for _, err := range []error{
		nil, syscall.EIO, syscall.ENOSPC, fmt.Errorf("sync: %w", syscall.EIO), errors.New("file sync error: no space left on device"),
		&fs.PathError{Op: "sync", Path: "jobs.db", Err: syscall.EIO}, // as on systems other than Linux and OpenBSD
	} {
		require.False(t, dbfile.RefusedByDisk(err), "%v", err)
	}
}

// Rule: a sync that fails while bbolt grows a copy is ErrDisk, since it leaves nothing in doubt:
// there is no copy. Its text does not name the temporary file.
func TestSyncOfGrowingCopyFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy.db")
	err := dbfile.Create(path, func(temp string) error {
		return fmt.Errorf("file sync error: sync %s: %s", temp, syscall.EIO) // with bbolt's text
	})
	require.ErrorIs(t, err, ErrDisk)
	require.NotContains(t, err.Error(), "copy.db")
	require.NoFileExists(t, path)
}

// Rule: calls that are retried one by one after a refusal are synced like all others.
func TestCallsTriedApartAreSynced(t *testing.T) {
	q := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), nil)
	refused, synced, loose := false, 0, 0
	replaceCommit(t, q, func(tx *bbolt.Tx) error {
		if !refused {
			refused = true
			return refusals[0]
		}
		synced++
		if tx.DB().NoSync {
			loose++
		}
		return tx.Commit()
	})
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})) // the commits before it are over
	require.Positive(t, synced)
	require.Zero(t, loose)
}
