package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// standing returns the counts of a group: members that are pending, and that have succeeded.
func standing(t testing.TB, q *postgres.Queue, name string) [2]int {
	t.Helper()
	s, err := group.Get(t.Context(), q, name)
	require.NoError(t, err)
	return [2]int{s.Pending, s.Succeeded}
}

// Rule: a group counts the members that a transaction of the app enqueues or acks if the transaction commits,
// and only then.
func TestMembersInTransactionsOfTheApp(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		done := &pawl.Envelope{Kind: "done", Queue: "callbacks"}
		require.NoError(t, group.Make(t.Context(), q, group.Group{Name: "g", Done: done}))
		tx := begin()
		require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k", Group: "g"}))
		require.NoError(t, tx.rollback())
		require.Equal(t, [2]int{0, 0}, standing(t, q, "g"))
		tx = begin()
		require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k", Group: "g"}))
		err := withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k", Group: "none"})
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.NoError(t, tx.commit())
		require.Equal(t, [2]int{1, 0}, standing(t, q, "g"))
		require.NoError(t, group.Close(t.Context(), q, "g"))
		l := fetchOne(t, q)
		tx = begin()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		require.NoError(t, tx.rollback())
		require.Equal(t, [2]int{1, 0}, standing(t, q, "g"))
		tx = begin()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		require.NoError(t, tx.commit())
		require.Equal(t, [2]int{0, 1}, standing(t, q, "g"))
		require.NoError(t, q.Wake(t.Context()))
		leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"callbacks"}, Max: 2, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.Len(t, leases, 1)
	})
}

// Rule: an open transaction of the app that has moved a member of a group delays neither other jobs nor
// fetches, even if leases and deadlines of other members pass before it ends. Those members move afterwards.
func TestMembersBesideAnOpenTransaction(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		q := open(t, schema, virtual, func(o *postgres.Options) { o.Lease = time.Second })
		require.NoError(t, group.Make(t.Context(), q, group.Group{Name: "g"}))
		held := lease(t, q, &pawl.Envelope{Kind: "k", Group: "g"})
		silent := lease(t, q, &pawl.Envelope{Kind: "k", Group: "g", Deadline: time.Now().Add(time.Second)})
		late := &pawl.Envelope{Kind: "late", Group: "g", Deadline: time.Now().Add(time.Second)}
		require.NoError(t, withid.Enqueue(t.Context(), q, late))
		tx := appTxs["pgx"](t)()
		require.NoError(t, q.AckTx(t.Context(), tx, held))
		member := make(chan error, 1)
		go func() { member <- withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "later", Group: "g"}) }()
		for end := silent.Expires.Add(100 * time.Millisecond); !time.Now().After(end); time.Sleep(100 * time.Millisecond) {
			require.NoError(t, withid.Enqueue(patient(t), q, &pawl.Envelope{Kind: "other"}))
			leases, err := q.Fetch(patient(t), pawl.Request{Max: 1, Kinds: []string{"other"}})
			require.NoError(t, err)
			require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
		}
		require.NoError(t, tx.commit())
		require.NoError(t, <-member)
		require.NoError(t, q.Wake(t.Context()))
		for ctx := patient(t); standing(t, q, "g") != [2]int{1, 1}; time.Sleep(50 * time.Millisecond) { // the late one, and the silent one, whose deadline passed too
			_, err := q.Fetch(ctx, pawl.Request{Max: 1, Kinds: []string{"other"}, Wait: pawl.WaitNot})
			require.ErrorIs(t, err, pawl.ErrEmpty)
		}
	})
}

// Rule: members of a group that an open transaction of the app has locked delay neither deadlines nor removals of other
// jobs, however many members are due first. They move after the transaction.
func TestManyDueMembersBesideAnOpenTransaction(t *testing.T) {
	for name, settled := range map[string]bool{"deadlines": false, "removals": true} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, schema string) {
				const members = 2100 // more than two portions
				q := open(t, schema, noPoll, virtual)
				require.NoError(t, group.Make(t.Context(), q, group.Group{Name: "g"}))
				batch := make([]*pawl.Envelope, members+1)
				for i := range batch {
					batch[i] = &pawl.Envelope{Kind: "k", Group: "g", Retain: time.Minute, Deadline: time.Now().Add(time.Minute)}
				}
				other := batch[members]
				other.Group = ""
				require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
				for left := len(batch); settled && left > 0; {
					leases, err := q.Fetch(t.Context(), pawl.Request{Max: left, Wait: pawl.WaitNot})
					require.NoError(t, err)
					settlements := make([]pawl.Settlement, len(leases))
					for i, l := range leases {
						settlements[i] = l.Ack()
					}
					require.NoError(t, q.Settle(t.Context(), settlements...))
					left -= len(leases)
				}
				waiting := func() int {
					return count(t, "SELECT count(*) FROM "+schema+".job WHERE place IN (0, 4)")
				}
				require.Equal(t, members+1, waiting())
				tx := appTxs["pgx"](t)()
				require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k", Group: "g"}))
				time.Sleep(time.Minute + 500*time.Millisecond)
				meanwhile := waiting()
				require.NoError(t, tx.rollback())
				require.Equal(t, members, meanwhile, "while the transaction is open")
				time.Sleep(500 * time.Millisecond)
				require.Zero(t, waiting())
			})
		})
	}
}
