package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// keyRowsOf returns the rows of keys by key, and the root page of their bucket, which any write moves.
func keyRowsOf(t *testing.T, q *Queue) (rows map[string]string, page uint64) {
	t.Helper()
	rows = make(map[string]string)
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucketKeys)
		page = uint64(b.Root())
		return b.ForEach(func(k, v []byte) error {
			rows[string(k)] = string(v)
			return nil
		})
	}))
	return rows, page
}

// Rule: a lease changes no row of a key, so a fetch writes none.
func TestFetchWritesNoRowOfAKey(t *testing.T) {
	for name, limits := range map[string]pawl.Limits{
		"limit": {RunningPerKey: 2}, "order": {InOrder: pawl.OrderHold},
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
			for i := range 99 { // too many for a bucket inside of a page
				addKeyed(t, q, 1+i%3, fmt.Sprint(i))
			}
			before, page := keyRowsOf(t, q)
			require.Len(t, before, 99)
			require.NotZero(t, page)
			leases := fetch(t, q, 99)
			require.NotEmpty(t, leases)
			after, same := keyRowsOf(t, q)
			require.Equal(t, before, after)
			require.Equal(t, page, same, "the bucket was written")
			checkNow(t, q)
			require.NoError(t, q.Settle(t.Context(), acksOf(leases)...))
			after, _ = keyRowsOf(t, q)
			require.NotEqual(t, before, after)
		})
	}
}

// Rule: a settlement that lets the next of many blocked jobs of a key run does not write the row of the key.
func TestAckLeavesTheRowOfAKey(t *testing.T) {
	q := openTest(t, perKey(1))
	for i := range 99 { // too many for a bucket inside of a page
		addKeyed(t, q, 4, fmt.Sprint(i))
	}
	before, page := keyRowsOf(t, q)
	require.Len(t, before, 99)
	require.NotZero(t, page)
	for range 2 {
		require.NoError(t, q.Settle(t.Context(), acksOf(fetch(t, q, 99))...))
		after, same := keyRowsOf(t, q)
		require.Equal(t, before, after)
		require.Equal(t, page, same, "the bucket was written")
	}
	leases := fetch(t, q, 99)
	slices.Reverse(leases) // so that pages of blocked jobs become empty before those in front of them
	require.NoError(t, q.Settle(t.Context(), acksOf(leases)...))
	checkNow(t, q)
	after, _ := keyRowsOf(t, q)
	require.Len(t, after, 99)
	for key, row := range after {
		require.NotEqual(t, before[key], row, "none is blocked any more")
	}
	require.NoError(t, q.Settle(t.Context(), acksOf(fetch(t, q, 99))...))
	after, _ = keyRowsOf(t, q)
	require.Empty(t, after)
}

var errUndo = errors.New("undo")

// Rule: the counts of leases by key are those that a scan of the leases finds. The queue changes leases,
// also in a commit that the disk refuses at first, and so do transactions of the app, some of which are
// rolled back.
func TestLeasesByKeyAreThoseOfTheFile(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			o := perKey(1 + int(seed%3))
			if seed >= 3 {
				o = ordered(pawl.OrderHold)
			}
			db := openApp(t)
			q := openOver(t, db, o)
			var leases []*pawl.Lease
			for range 150 {
				if len(leases) == 0 {
					addKeyed(t, q, 1+r.IntN(3), fmt.Sprint(r.IntN(4)))
					leases = append(leases, fetch(t, q, 1+r.IntN(3))...)
					continue
				}
				i := r.IntN(len(leases))
				l := leases[i]
				undo := errUndo
				if r.IntN(2) == 0 {
					undo = nil
				}
				app := func(tx *bbolt.Tx) error {
					_, err := q.EnqueueTx(tx, &pawl.Envelope{Kind: "k", Key: l.Key})
					return errors.Join(err, q.AckTx(tx, l), undo)
				}
				ended := true
				switch r.IntN(6) {
				case 0:
					require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
				case 1:
					require.NoError(t, q.Settle(t.Context(), l.Release()))
				case 2:
					err := db.Update(app)
					require.Equal(t, undo != nil, errors.Is(err, errUndo))
					ended = undo == nil
				case 3:
					err := q.Update(t.Context(), app)
					require.Equal(t, undo != nil, errors.Is(err, errUndo))
					ended = undo == nil
				case 4:
					require.NoError(t, q.do(t.Context(), visit(func() {
						commit := q.scheduler.commitTx
						q.scheduler.commitTx = func(tx *bbolt.Tx) error {
							q.scheduler.commitTx = commit
							return refusals[0]
						}
					})))
					require.NoError(t, q.Settle(t.Context(), l.Ack()), "the second time")
				case 5:
					require.NoError(t, q.Settle(t.Context(), l.Ack()))
				}
				if ended {
					leases = append(leases[:i], leases[i+1:]...)
				}
				require.NoError(t, q.do(t.Context(), look(func(tx *txn) {
					known := leasedOf(tx.leasesByKey())
					tx.recountLeases()
					require.Equal(t, leasedOf(tx.leasesByKey()), known)
				})))
			}
			checkNow(t, q)
		})
	}
}

// leasedOf returns the counts of leases that are not zero.
func leasedOf(c *keyLeases) map[string]int {
	all := make(map[string]int)
	for lane, count := range c.counts {
		if count.n > 0 {
			all[lane] = count.n
		}
	}
	return all
}

// Rule: what a kill leaves says how many jobs of each key are leased, to a reader of the file, and the next
// process gives them back.
func TestLeasesByKeyAfterAKill(t *testing.T) {
	for name, o := range map[string]*Options{"limit": perKey(2), "order": ordered(pawl.OrderContinue)} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, o)
			jobs := addKeyed(t, q, 5, "a")
			leases := fetch(t, q, 9)
			left := filepath.Join(memoryFolder(t), "left.db")
			b, err := os.ReadFile(q.path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(left, b, 0o600))
			stopped, err := OpenReader(left)
			require.NoError(t, err)
			for _, of := range []*reader{&q.reader, &stopped.reader} {
				k, err := of.Key(t.Context(), pawl.DefaultQueue, "a")
				require.NoError(t, err)
				require.Equal(t, [3]int{len(leases), 5 - len(leases), 5 - len(leases)}, [3]int{k.Running, k.Ready, k.Blocked})
				require.Len(t, k.Holders, len(leases))
				all, err := of.Keys(t.Context(), pawl.DefaultQueue, "", 9)
				require.NoError(t, err)
				require.Len(t, all, 1)
				require.Equal(t, [3]int{len(leases), 5 - len(leases), 5 - len(leases)}, [3]int{all[0].Running, all[0].Ready, all[0].Blocked})
			}
			require.NoError(t, stopped.Close())
			checkFile(t, left)
			again := openAt(t, left, nil)
			require.Len(t, fetch(t, again, 9), len(leases))
			require.Equal(t, jobs[0].ID, leases[0].ID)
			checkNow(t, again)
		})
	}
}

// Rule: if only the checksum in the row of a key is damaged, the row is written again.
func TestDamagedChecksumOfAKey(t *testing.T) {
	q := openTest(t, perKey(1))
	addKeyed(t, q, 2, "a")
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucketKeys)
		k, v := b.Cursor().First()
		k, v = bytes.Clone(k), bytes.Clone(v)
		v[len(v)-1] ^= 1
		return b.Put(k, v)
	}))
	leaseOne(t, q)
	checkNow(t, q)
}

// Rule: counts that are zero go once they are too many, and a row of a key that refers to one of them
// counts anew.
func TestLeasesByKeyForgetIdleKeys(t *testing.T) {
	c := keyLeases{counts: make(map[string]*leaseCount)}
	first, busy := c.at([]byte("first")), c.at([]byte("busy"))
	c.set(busy, 2)
	for i := range 3 * maxCachedKeys {
		count := c.at([]byte(fmt.Sprint(i)))
		c.set(count, 1)
		c.set(count, 0)
		require.LessOrEqual(t, len(c.counts), maxCachedKeys+2)
	}
	require.True(t, first.gone)
	require.False(t, busy.gone)
	require.Equal(t, map[string]int{"busy": 2}, leasedOf(&c))
	require.NotSame(t, first, c.at([]byte("first")))
}
