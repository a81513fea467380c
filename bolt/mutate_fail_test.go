package bolt

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: until a mutation is accepted, its context can withdraw it, and then it never runs. An
// accepted mutation is carried out whatever its context does.
func TestJoinIsWithdrawnBeforeItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		ctx, cancel := context.WithCancelCause(t.Context())
		never := riding("never", nil)
		release := g.occupy(q)
		waiting := started(func() error { return q.Mutate(ctx, never, 0) })
		synctest.Wait()
		cancel(errBoom)
		for _, err := range []error{<-waiting, q.Mutate(ctx, never, 0)} {
			require.ErrorIs(t, err, pawl.ErrNotAccepted)
			require.ErrorIs(t, err, errBoom)
		}
		release()
		synctest.Wait()
		require.Equal(t, int32(1), g.commits.Load())
		require.Zero(t, never.checks)

		ctx, cancel = context.WithCancelCause(t.Context())
		reached, leave := g.hold()
		joined := started(func() error { return q.Mutate(ctx, riding("row", nil), 0) })
		reached()
		cancel(nil)
		synctest.Wait()
		require.Empty(t, joined, "it waits for the commit")
		leave()
		require.NoError(t, <-joined)
		require.Equal(t, []string{"row"}, appRows(t, q.db))
	})
}

// Rule: Close waits for accepted mutations, and the others never run.
func TestCloseWaitsForMutations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		q := openAt(t, path, nil)
		g := gateCommits(q)
		reached, leave := g.hold()
		taken := started(func() error {
			return q.Mutate(t.Context(), riding("taken", func(p *ops) error { return withid.EnqueueOps(p, &pawl.Envelope{Kind: "k"}) }), 0)
		})
		reached()
		never := riding("never", nil)
		late := started(func() error { return q.Mutate(t.Context(), never, 0) })
		synctest.Wait()
		closed := started(q.Close)
		synctest.Wait()
		require.Empty(t, closed)
		leave()
		require.NoError(t, <-taken)
		require.ErrorIs(t, <-late, pawl.ErrClosed)
		require.NoError(t, <-closed)
		require.ErrorIs(t, q.Mutate(t.Context(), never, 0), pawl.ErrClosed)
		require.Zero(t, never.checks)

		q = openAt(t, path, nil)
		require.Equal(t, []string{"taken"}, appRows(t, q.db))
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
	})
}

// Rule: a failed sync leaves the outcome of the mutations in that commit unknown, their rows
// and their verbs alike, and the queue accepts no others. When it is opened again, it has
// neither.
func TestFailedSyncOfMutations(t *testing.T) {
	for _, test := range failedSyncs {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			synctest.Test(t, func(t *testing.T) {
				q, err := Open(path, quiet())
				require.NoError(t, err)
				s := newStand(t, q)
				require.NoError(t, q.RunNow(t.Context(), s.delayed))
				g := gateCommits(q)
				release := g.occupy(q)
				failing := started(func() error {
					return q.do(context.Background(), visit(func() { q.scheduler.commitTx = test.commit }))
				})
				synctest.Wait()
				answers := mutateInOrder(t, q,
					riding("one", func(p *ops) error { return p.Ack(s.lease) }),
					riding("two", func(p *ops) error { return p.Retry(s.dead) }))
				release()
				for _, answer := range append(answers, failing) {
					err := <-answer
					require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
					require.ErrorIs(t, err, pawl.ErrPoisoned)
					require.ErrorContains(t, err, "input/output error", "the cause is named")
				}
				never := riding("never", nil)
				err = q.Mutate(t.Context(), never, 0)
				require.ErrorIs(t, err, pawl.ErrPoisoned)
				require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
				require.Zero(t, never.checks)
				require.NoError(t, q.Close())
			})

			synctest.Test(t, func(t *testing.T) { // outside of a bubble, years have passed
				q := openAt(t, path, nil)
				require.Empty(t, appRows(t, q.db))
				require.Equal(t, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
			})
		})
	}
}

// Rule: a mutation's mistakes affect only itself. The queue continues after each of them.
func TestMistakesOfAMutation(t *testing.T) {
	q := openTest(t, nil)
	s := newStand(t, q)
	before := digest(t, q)
	for name, r := range map[string]driver.Mutation{
		"none":             nil,
		"no lease":         riding("row", func(p *ops) error { return p.Ack(nil) }),
		"an empty lease":   riding("row", func(p *ops) error { return p.Hold(new(pawl.Lease)) }),
		"no envelope":      riding("row", func(p *ops) error { return withid.EnqueueOps(p, nil) }),
		"a missing bucket": riding("row", func(p *ops) error { txOf(p).Bucket(appBucket).Get(nil); return nil }),
		"behind a look at a job": riding("row", func(p *ops) error {
			_, err := p.State(s.dead)
			panic(err)
		}),
		"an error of its own": riding("row", func(p *ops) error {
			panic(pawl.ErrLeaseLost) // it must not pass for a panic of the queue
		}),
	} {
		err := q.Mutate(t.Context(), r, 0)
		require.Error(t, err, name)
		for _, other := range []error{pawl.ErrCorrupt, pawl.ErrPoisoned, pawl.ErrLeaseLost} {
			require.NotErrorIs(t, err, other, name)
		}
		require.Equal(t, before, digest(t, q), name)
		require.Empty(t, appRows(t, q.db), name)
	}
	require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) error { return p.Ack(s.lease) }), 0))
}

// Rule: a panic while the queue reads its own rows is not a mistake of the mutation: the pages
// are damaged, and the queue no longer writes to the file.
func TestDamageThatAPlanMeets(t *testing.T) {
	q := openTest(t, nil)
	err := q.Mutate(t.Context(), riding("row", func(p *ops) error {
		return p.look(visit(func() { panic("page 7 is no page") }))
	}), 0)
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.ErrorContains(t, err, "page 7 is no page")
	require.ErrorIs(t, q.Mutate(t.Context(), riding("row", nil), 0), pawl.ErrPoisoned)
}

// An undone transaction serves no fetch: if Apply of a mutation fails, a fetch that would have
// received its job keeps waiting.
func TestFailedApplyServesNoFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		fetching := started(func() error {
			_, err := q.Fetch(ctx, pawl.Request{Max: 1})
			return err
		})
		synctest.Wait()
		r := refusing("Apply", riding("row", func(p *ops) error { return withid.EnqueueOps(p, &pawl.Envelope{Kind: "k"}) }), errBoom)
		require.ErrorIs(t, q.Mutate(t.Context(), r, 0), errBoom)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-fetching, pawl.ErrNotAccepted)
	})
}

// Rule: a mutation that ends its goroutine, as a failing test does, writes nothing and stops
// the queue with an error that says so. Nobody waits forever.
func TestMutationThatEndsItsGoroutine(t *testing.T) {
	for _, half := range []string{"Check", "Apply"} {
		t.Run(half, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			q := openAt(t, path, nil)
			r := riding("never", nil)
			if half == "Check" {
				r.check = func(*ops) error { runtime.Goexit(); return nil }
			} else {
				r.apply = func(*bbolt.Tx) error { runtime.Goexit(); return nil }
			}
			err := q.Mutate(t.Context(), r, 0)
			require.ErrorIs(t, err, pawl.ErrPoisoned)
			require.ErrorContains(t, err, "runtime.Goexit")
			require.ErrorIs(t, q.Mutate(t.Context(), riding("later", nil), 0), pawl.ErrPoisoned)
			_ = q.Close()
			q = openAt(t, path, nil)
			require.Empty(t, appRows(t, q.db))
		})
	}
}
