package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: the row of a key says where its ready jobs end among its blocked ones, in whatever order jobs of several
// priorities come, are leased, blocked, removed, or end, and whichever call reads it next.
func TestRowsOfKeysWithPriorities(t *testing.T) {
	seeds, mixed := max(3, race.Fewer(10)), 0 // one goroutine makes the changes
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		q := openTest(t, perKey(1+random.IntN(3)))
		var jobs []pawl.ID
		var leases []*pawl.Lease
		for range 150 {
			switch n := random.IntN(12); {
			case n < 5:
				e := &pawl.Envelope{Kind: "k", Key: []string{"a", "a", "b", ""}[random.IntN(4)], Priority: int8(random.IntN(5))}
				if n == 0 {
					e.IdempotencyKey = fmt.Sprint(random.IntN(2))
				}
				require.NoError(t, withid.Enqueue(t.Context(), q, e))
				jobs = append(jobs, e.ID)
			case n < 7: // it may stop between two jobs of a key without room
				leases = append(leases, fetch(t, q, 1+random.IntN(2))...)
			case n < 9 && len(jobs) > 0:
				i := random.IntN(len(jobs))
				if err := q.Cancel(t.Context(), jobs[i]); err != nil && !errors.Is(err, pawl.ErrConflict) {
					require.ErrorIs(t, err, pawl.ErrNotFound)
				}
				jobs = slices.Delete(jobs, i, i+1)
			case n < 10: // the scheduler reads the rows again
				require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
					_, err := tx.CreateBucketIfNotExists([]byte("app"))
					return err
				}))
			case len(leases) > 0:
				l := leases[0]
				leases = leases[1:]
				how := []pawl.Settlement{l.Ack(), l.Release(), l.Nack(0, errBoom)}
				require.NoError(t, q.Settle(t.Context(), how[random.IntN(len(how))]))
			}
			checkNow(t, q)
			rows, _ := keyRowsOf(t, q)
			for k, v := range rows {
				row, err := parseKeyRow([]byte(k), []byte(v))
				require.NoError(t, err)
				if slices.ContainsFunc(row.lanes, func(l keyLane) bool { return l.mixed }) {
					mixed++
				}
			}
		}
		require.NoError(t, q.Close())
	}
	require.Greater(t, mixed, seeds, "a ready job came after a blocked one")
}

// Rule: the ready jobs of a lane come before its blocked ones, unless a job is blocked or becomes ready elsewhere. That ends with the
// ready jobs, and with the blocked ones.
func TestMixedLanes(t *testing.T) {
	order := func(n byte) []byte { return bytes.Repeat([]byte{n}, orderWidth) }
	var l keyLane
	l.enter(order(3))
	l.block(order(4), l.last[:])
	require.False(t, l.mixed)
	require.True(t, l.comesLast(order(2)), "the first blocked one does, whatever it is")
	l.block(order(2), order(4))
	require.True(t, l.mixed)
	require.False(t, l.comesLast(order(2)))
	l.leave()
	require.Equal(t, []bool{true, false}, []bool{l.blocked, l.mixed})

	l = keyLane{}
	l.enter(order(3))
	l.block(order(2), l.last[:])
	require.True(t, l.mixed)
	l.unblock(order(2), true)
	require.True(t, l.mixed)
	l.unblock(order(4), false)
	require.Equal(t, []bool{false, false}, []bool{l.blocked, l.mixed})
	require.False(t, l.comesLast(order(3)))
	require.True(t, l.comesLast(order(4)))
}
