package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// mutateInOrder queues mutations while the queue is occupied, so that they form a batch in
// order, and returns their results.
func mutateInOrder(t *testing.T, q *Queue, mutations ...*ride) (answers []<-chan error) {
	t.Helper()
	for _, r := range mutations {
		answers = append(answers, started(func() error { return q.Mutate(t.Context(), r, 100) }))
		synctest.Wait()
	}
	return answers
}

// counted is a row that mutations increment.
var counted = []byte("counted")

func readCount(tx *bbolt.Tx) uint64 {
	b := tx.Bucket(counted)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b.Get(counted))
}

func writeCount(tx *bbolt.Tx, n uint64) error {
	b, err := tx.CreateBucketIfNotExists(counted)
	if err != nil {
		return err
	}
	return b.Put(counted, binary.BigEndian.AppendUint64(nil, n))
}

// Rule: mutations that wait together share one commit with the calls of others, and each runs
// once. The Check of each sees what earlier ones have applied, rows and jobs alike.
func TestMutationsShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		const n = 50
		for range n {
			add(t, q, nil)
		}
		leases := fetch(t, q, n)
		var mutations []*ride
		for i := range n {
			var seen uint64
			mutations = append(mutations, &ride{
				check: func(p *ops) error {
					if seen = readCount(txOf(p)); seen != uint64(i) {
						return fmt.Errorf("mutation %d sees %d before it", i, seen)
					}
					if i > 0 {
						if state, err := p.State(leases[i-1].ID); err != nil || state != pawl.Delayed {
							return fmt.Errorf("mutation %d sees the job before it %s: %w", i, state, err)
						}
						if err := p.RunNow(leases[i-1].ID); err != nil {
							return err
						}
					}
					return p.Snooze(leases[i], p.Now().Add(time.Hour))
				},
				apply: func(tx *bbolt.Tx) error { return writeCount(tx, seen+1) },
			})
		}
		release := g.occupy(q)
		answers := mutateInOrder(t, q, mutations...)
		other := started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: "other"}) })
		synctest.Wait()
		before := g.commits.Load()
		release()
		for i, answer := range answers {
			require.NoError(t, <-answer)
			require.Equal(t, 1, mutations[i].checks)
			require.Equal(t, 1, mutations[i].applied)
		}
		require.NoError(t, <-other)
		require.Equal(t, before+1, g.commits.Load())
		require.Equal(t, pawl.Counts{Ready: n - 1, Delayed: 1}, countsOf(t, q, pawl.DefaultQueue))
	})
}

// Rule: if a mutation fails in Check or Apply, by an error or a panic, only that mutation
// fails. Its neighbors are committed, and later mutations see none of its writes. Its error is
// returned unchanged, even a bbolt error about a row, which is about the mutation's row and not
// damage of the queue. A panic is reported with its stack and is not damage either.
func TestFailedMutationLeavesItsNeighborsAlone(t *testing.T) {
	for _, c := range []struct {
		half    string
		refusal error // nil for a panic
		commits int32
	}{
		{"Check", errBoom, 1},
		{"Check", nil, 1},
		{"Apply", errBoom, 4}, // one for each neighbor
		{"Apply", berrors.ErrKeyTooLarge, 4},
		{"Apply", nil, 4},
	} {
		t.Run(fmt.Sprint(c.half, " ", c.refusal), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				g := gateCommits(q)
				s := newStand(t, q)
				add(t, q, nil)
				acked := leaseOne(t, q)
				bad := riding("bad", func(p *ops) error {
					return errors.Join(p.Ack(s.lease), p.RunNow(s.delayed), withid.EnqueueOps(p, &pawl.Envelope{Kind: "k", Queue: "bad"}))
				})
				if c.refusal != nil {
					refusing(c.half, bad, c.refusal)
				} else if plan, write := bad.check, bad.apply; c.half == "Check" {
					bad.check = func(p *ops) error { panic(plan(p)) }
				} else {
					bad.apply = func(tx *bbolt.Tx) error { panic(write(tx)) }
				}
				before := riding("before", func(p *ops) error { return p.RunNow(s.later) })
				behind := riding("behind", func(p *ops) error {
					if b := txOf(p).Bucket(appBucket); b != nil && b.Get([]byte("bad")) != nil {
						return errors.New("it sees what is undone")
					}
					if state, _ := p.State(s.lease.ID); state != pawl.Leased {
						return errors.New("it sees a verb that is undone")
					}
					return p.Retry(s.dead)
				})
				release := g.occupy(q)
				answers := mutateInOrder(t, q, before, bad, behind)
				enqueued := started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: "other"}) })
				ack := started(func() error { return q.Settle(t.Context(), acked.Ack()) })
				synctest.Wait()
				commits := g.commits.Load()
				release()
				require.NoError(t, <-answers[0])
				require.NoError(t, <-answers[2])
				require.NoError(t, <-enqueued)
				require.NoError(t, <-ack)
				err := <-answers[1]
				if c.refusal != nil {
					require.True(t, err == c.refusal, "%v", err)
				} else {
					require.ErrorContains(t, err, "mutation panicked: ")
					require.ErrorContains(t, err, "mutate_kit_test.go", "its stack is told")
					require.NotErrorIs(t, err, pawl.ErrCorrupt)
					require.NotErrorIs(t, err, pawl.ErrPoisoned)
				}
				require.Equal(t, 1, behind.checks, "nobody is asked in a transaction that is undone")
				require.Equal(t, commits+c.commits, g.commits.Load())
				require.Equal(t, []string{"before", "behind"}, appRows(t, q.db))
				require.Equal(t, pawl.Counts{Ready: 2, Delayed: 1, Leased: 1}, countsOf(t, q, pawl.DefaultQueue))
				require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, "other"))
				require.Zero(t, countsOf(t, q, "bad"))
				require.False(t, driver.Settled(s.lease))
				require.NoError(t, q.Settle(t.Context(), s.lease.Ack()))
				checkNow(t, q)
			})
		})
	}
}

// Rule: if the disk refuses a commit, each mutation runs again alone, in both halves. Only the
// mutation that does not fit fails, and none of its writes remain.
func TestMutationsRunAgainAfterARefusal(t *testing.T) {
	for _, refusal := range refusals {
		t.Run(refusal.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				g := gateCommits(q)
				add(t, q, nil)
				add(t, q, nil)
				add(t, q, nil)
				leases := fetch(t, q, 3)
				envelopes := newBatch(3)
				var mutations []*ride
				for i, row := range []string{"first", "large", "last"} {
					mutations = append(mutations, riding(row, func(p *ops) error {
						return errors.Join(p.Ack(leases[i]), withid.EnqueueOps(p, envelopes[i]))
					}))
				}
				release := g.occupy(q)
				full := started(func() error {
					return q.do(context.Background(), visit(func() {
						q.scheduler.commitTx = func(tx *bbolt.Tx) error {
							if b := tx.Bucket(appBucket); b != nil && b.Get([]byte("large")) != nil {
								return refusal
							}
							return tx.Commit()
						}
					}))
				})
				synctest.Wait()
				answers := mutateInOrder(t, q, mutations...)
				release()
				require.NoError(t, <-full)
				require.NoError(t, <-answers[0])
				require.NoError(t, <-answers[2])
				err := <-answers[1]
				require.ErrorIs(t, err, ErrDisk)
				require.ErrorContains(t, err, refusal.Error())
				require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
				for i, r := range mutations {
					require.Equal(t, 2, r.checks)
					require.Equal(t, 2, r.applied)
					require.Equal(t, i != 1, driver.Settled(leases[i]))
					_, err := q.Job(t.Context(), envelopes[i].ID)
					require.Equal(t, i == 1, errors.Is(err, pawl.ErrNotFound))
				}
				require.Equal(t, []string{"first", "last"}, appRows(t, q.db))
				require.Equal(t, pawl.Counts{Ready: 2, Leased: 1}, countsOf(t, q, pawl.DefaultQueue))
				checkNow(t, q)

				replaceCommit(t, q, (*bbolt.Tx).Commit)
				require.NoError(t, q.Mutate(t.Context(), mutations[1], 100), "it can be tried again")
				require.True(t, driver.Settled(leases[1]))
			})
		})
	}
}

// Rule: the same holds if bbolt itself finds that the file cannot grow.
func TestMutationBeyondTheSizeOfTheFile(t *testing.T) {
	q := openTest(t, nil)
	add(t, q, nil)
	l := leaseOne(t, q)
	const size = 8 << 20
	r := riding("row", func(p *ops) error { return p.Ack(l) })
	write := r.apply
	r.apply = func(tx *bbolt.Tx) error {
		return errors.Join(write(tx), tx.Bucket(appBucket).Put([]byte("large"), make([]byte, size)))
	}
	limit := func(size int) {
		require.NoError(t, q.do(t.Context(), visit(func() { q.db.MaxSize = size })))
	}
	limit(1 << 20)
	err := q.Mutate(t.Context(), r, size)
	require.ErrorIs(t, err, ErrDisk)
	require.NotErrorIs(t, err, syscall.EIO)
	require.False(t, driver.Settled(l))
	require.Empty(t, appRows(t, q.db))
	limit(0)
	r.apply = write
	require.NoError(t, q.Mutate(t.Context(), r, size))
	require.True(t, driver.Settled(l))
}

// Rule: the size stated for a mutation limits what shares its commit. A negative size counts as
// zero.
func TestSizeOfAMutation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		const half = maxGroupBytes/2 + 1
		for _, c := range []struct {
			bytes   []int
			commits int32
		}{{[]int{0, 0, 0}, 1}, {[]int{half, half, half}, 3}, {[]int{math.MinInt / 2, half, half}, 2}} {
			release := g.occupy(q)
			var answers []<-chan error
			for _, bytes := range c.bytes {
				answers = append(answers, started(func() error { return q.Mutate(t.Context(), riding("row", nil), bytes) }))
				synctest.Wait()
			}
			before := g.commits.Load()
			release()
			for _, answer := range answers {
				require.NoError(t, <-answer)
			}
			require.Equal(t, before+c.commits, g.commits.Load(), "%d bytes", c.bytes)
		}
	})
}
