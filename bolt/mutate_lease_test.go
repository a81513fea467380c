package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// leaseVerbs are the verbs of a mutation that need a lease.
var leaseVerbs = []struct {
	name string
	plan func(*ops, *pawl.Lease) error
	ends bool
}{
	{"hold", (*ops).Hold, false},
	{"ack", (*ops).Ack, true},
	{"snooze", func(p *ops, l *pawl.Lease) error { return p.Snooze(l, p.Now().Add(time.Hour)) }, true},
}

// Rule: a caller that has lost the lease of a job writes nothing with it.
func TestPlanWithALostLease(t *testing.T) {
	for rule, lose := range map[string]func(t *testing.T, q *Queue, l *pawl.Lease){
		"expired":           func(_ *testing.T, q *Queue, _ *pawl.Lease) { expire(q) },
		"expired and given": func(t *testing.T, q *Queue, _ *pawl.Lease) { expire(q); leaseOne(t, q) },
		"of another token":  func(_ *testing.T, _ *Queue, l *pawl.Lease) { l.Token++ },
		"acked":             func(t *testing.T, q *Queue, l *pawl.Lease) { require.NoError(t, q.Settle(t.Context(), l.Ack())) },
		"snoozed by a mutation": func(t *testing.T, q *Queue, l *pawl.Lease) {
			own := *l
			require.NoError(t, q.Mutate(t.Context(), &ride{check: func(p *ops) error { return p.Snooze(&own, p.Now()) }}, 0))
		},
	} {
		for _, verb := range leaseVerbs {
			t.Run(verb.name+", "+rule, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := openTest(t, nil)
					add(t, q, nil)
					l := leaseOne(t, q)
					lose(t, q, l)
					before := digest(t, q)
					plan := func(p *ops) error { return verb.plan(p, l) }
					require.ErrorIs(t, q.Mutate(t.Context(), riding("row", plan), 0), pawl.ErrLeaseLost)
					inTx(t, q, nil, func(tx *bbolt.Tx) {
						require.ErrorIs(t, q.MutateTx(tx, riding("row", plan)), pawl.ErrLeaseLost)
					})
					require.Equal(t, before, digest(t, q))
					require.Empty(t, appRows(t, q.db))
					require.False(t, driver.Settled(l))
				})
			})
		}
	}
}

// Rule: a hold extends the lease from its commit on, as a heartbeat does. A failed mutation
// does not.
func TestHoldExtendsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 10 * time.Second
		q := openTest(t, &Options{Lease: length})
		id := add(t, q, nil).ID
		l := leaseOne(t, q)
		hold := func(p *ops) error { return p.Hold(l) }
		for range 5 {
			pass(length - 1)
			require.NoError(t, q.Mutate(t.Context(), riding("row", hold), 0))
		}
		pass(length - 1)
		synctest.Wait()
		require.Equal(t, pawl.Leased, find(t, q, id).State)
		for _, half := range []string{"Check", "Apply"} {
			require.ErrorIs(t, q.Mutate(t.Context(), refusing(half, riding("row", hold), errBoom), 0), errBoom)
		}
		pass(1)
		synctest.Wait()
		require.Equal(t, pawl.Ready, find(t, q, id).State)
		require.Equal(t, 1, find(t, q, id).Crashes)
	})
}

// Rule: a hold in a transaction of the app renews the lease, even if the lease expires before the commit, and if the
// scheduler begins its own transaction right after the commit.
func TestHoldInATransactionRenewsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		id := add(t, q, nil).ID
		l := leaseOne(t, q)
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			require.NoError(t, q.MutateTx(tx, riding("row", func(p *ops) error { return p.Hold(l) })))
			time.Sleep(time.Until(l.Expires) + 1) // no scheduler reaps meanwhile
			return nil
		}))
		settled(t, q)
		require.Equal(t, pawl.Leased, find(t, q, id).State)
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	})
}

// Rule: what a job did until a hold is progress, so later crashes count from zero: a job that
// crashes after each hold never becomes poison. A failed mutation makes no progress.
func TestHoldForgetsCrashes(t *testing.T) {
	for _, c := range []struct {
		rule    string
		hold    func(t *testing.T, q *Queue, l *pawl.Lease)
		forgets bool
	}{
		{"by Mutate", func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) error { return p.Hold(l) }), 0))
		}, true},
		{"by MutateTx", func(t *testing.T, q *Queue, l *pawl.Lease) {
			inTx(t, q, nil, func(tx *bbolt.Tx) {
				require.NoError(t, q.MutateTx(tx, riding("row", func(p *ops) error { return p.Hold(l) })))
			})
		}, true},
		{"not when Check refuses", func(t *testing.T, q *Queue, l *pawl.Lease) {
			r := refusing("Check", riding("row", func(p *ops) error { return p.Hold(l) }), errBoom)
			require.ErrorIs(t, q.Mutate(t.Context(), r, 0), errBoom)
		}, false},
		{"not when Apply refuses", func(t *testing.T, q *Queue, l *pawl.Lease) {
			r := refusing("Apply", riding("row", func(p *ops) error { return p.Hold(l) }), errBoom)
			require.ErrorIs(t, q.Mutate(t.Context(), r, 0), errBoom)
		}, false},
		{"not by a heartbeat", func(t *testing.T, q *Queue, l *pawl.Lease) {
			lost, err := q.Extend(t.Context(), l)
			require.NoError(t, err)
			require.Empty(t, lost)
		}, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				id := add(t, q, nil).ID
				crash := func() {
					expire(q)
					e := find(t, q, id)
					require.NotEqual(t, pawl.Leased, e.State)
				}
				for n := range 4 {
					l := leaseOne(t, q)
					require.Equal(t, n, l.Crashes)
					crash()
				}
				c.hold(t, q, leaseOne(t, q))
				crash()
				if !c.forgets {
					require.Equal(t, pawl.ReasonPoison, find(t, q, id).Death.Reason)
					return
				}
				for range 10 {
					l := leaseOne(t, q)
					require.Equal(t, 1, l.Crashes)
					c.hold(t, q, l)
					c.hold(t, q, l) // nothing is left to clear
					require.Zero(t, find(t, q, id).Crashes)
					crash()
				}
				for range 4 {
					leaseOne(t, q)
					crash()
				}
				require.Equal(t, pawl.ReasonPoison, find(t, q, id).Death.Reason)
			})
		})
	}
}

// Rule: a verb that ends a lease notifies the holder once that is durable, and not if it fails:
// the worker then settles as usual.
func TestPlanMarksTheLeaseSettledOnceItIsDurable(t *testing.T) {
	for _, verb := range leaseVerbs {
		t.Run(verb.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				g := gateCommits(q)
				add(t, q, nil)
				l := leaseOne(t, q)
				join := func(t *testing.T) error {
					return q.Mutate(t.Context(), riding("row", func(p *ops) error { return verb.plan(p, l) }), 0)
				}
				commit := q.scheduler.commitTx
				replaceCommit(t, q, func(*bbolt.Tx) error { return refusals[0] })
				require.ErrorIs(t, join(t), ErrDisk)
				require.False(t, driver.Settled(l))
				replaceCommit(t, q, commit)

				reached, leave := g.hold()
				joined := started(func() error { return join(t) })
				reached()
				synctest.Wait()
				require.False(t, driver.Settled(l), "it is not durable")
				leave()
				require.NoError(t, <-joined)
				require.Equal(t, verb.ends, driver.Settled(l))
				lost, err := q.Extend(t.Context(), l)
				require.NoError(t, err)
				require.Equal(t, verb.ends, len(lost) == 1)
				if !verb.ends {
					require.NoError(t, q.Settle(t.Context(), l.Ack()))
				}
				for _, late := range settling {
					require.ErrorIs(t, late.end(t.Context(), q, l), pawl.ErrLeaseLost, late.name)
				}
				require.NoError(t, q.do(t.Context(), visit(func() { require.Empty(t, q.scheduler.leases.byToken.pages) })))
			})
		})
	}
}

// Rule: an ack of a mutation finishes the effect of an idempotency key, and is refused if the
// effect has taken place already.
func TestPlanAcksAnEffect(t *testing.T) {
	q := openTest(t, nil)
	keyed := func(e *pawl.Envelope) { e.IdempotencyKey = "key" }
	e := add(t, q, keyed)
	l := leaseOne(t, q)
	require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) error { return p.Ack(l) }), 0))
	add(t, q, keyed)
	require.Empty(t, fetch(t, q, 1), "its effect is done")

	other := add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = "other" })
	l = leaseOne(t, q)
	e.ID, e.IdempotencyKey = other.ID, "other"
	require.NoError(t, q.do(t.Context(), finish{e}))
	require.ErrorIs(t, q.Mutate(t.Context(), riding("late", func(p *ops) error { return p.Ack(l) }), 0), pawl.ErrConflict)
	require.Equal(t, []string{"row"}, appRows(t, q.db))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}
