package bolt

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// hurt damages the value of a row, so that its checksum does not match.
func hurt(t *testing.T, b *table, key []byte) {
	t.Helper()
	sealed := bytes.Clone(b.Get(key))
	require.NotEmpty(t, sealed)
	sealed[len(sealed)-1] ^= 1
	require.NoError(t, b.Put(key, sealed))
}

// wakes returns how many keys are to be looked at again.
func wakes(s *store) (n int) {
	eachRow(s.expiry, nil, func(k, _ []byte) {
		if k[timeWidth] == endsRest {
			n++
		}
	})
	return n
}

// Rule: a salvage that loses the limits of a queue, or the queue, leaves nothing in the file that would look at its keys again.
func TestSalvageOfLostLimitsLeavesNoWake(t *testing.T) {
	for name, test := range map[string]struct {
		blocked int      // jobs that wait for the rate of their key
		rows    [][]byte // of the queue
	}{
		"its limits":           {1, [][]byte{numberKey(nil, 1)}},
		"its limits, no job":   {0, [][]byte{numberKey(nil, 1)}},
		"its rows":             {1, [][]byte{numberKey(nil, 1), nameKey(nil, pawl.DefaultQueue)}},
		"its rows, and no job": {0, [][]byte{numberKey(nil, 1), nameKey(nil, pawl.DefaultQueue)}},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := contradicted(t, func(q *Queue) {
				limits := &pawl.Limits{RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour, Burst: 1}}
				require.NoError(t, q.SetLimits(t.Context(), pawl.DefaultQueue, limits))
				addKeyed(t, q, 1+test.blocked, "a")
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			}, func(s *store) error {
				require.Equal(t, 1, wakes(s))
				for _, key := range test.rows {
					hurt(t, s.queues, key)
				}
				return nil
			})
			require.Len(t, fetch(t, q, 9), test.blocked, "nothing limits them")
		})
	}
}

// Rule: of several jobs that hold a key by their records, as pages of two files have them, one keeps it after a salvage.
func TestSalvageOfTwoHoldersOfAKey(t *testing.T) {
	for _, order := range []pawl.KeyOrder{pawl.OrderContinue, pawl.OrderHold} {
		t.Run(order.String(), func(t *testing.T) {
			from := filepath.Join(memoryFolder(t), "jobs.db")
			o := ordered(order)
			o.Logger = hclog.NewNullLogger()
			q, err := Open(from, o)
			require.NoError(t, err)
			jobs := addKeyed(t, q, 4, "a")
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
			require.NoError(t, q.Close())
			withBolt(t, from, func(tx *bbolt.Tx) error {
				s, err := openStore(tx)
				require.NoError(t, err)
				for _, job := range jobs[:3] {
					j, err := s.record(job.ID)
					require.NoError(t, err)
					j.HoldsKey = true
					require.NoError(t, putRecord(&s, j.Envelope))
				}
				return nil
			})
			to, _ := salvageTo(t, from)
			q = openAt(t, to, nil)
			holders := 0
			for _, job := range jobs {
				if find(t, q, job.ID).HoldsKey {
					holders++
				}
			}
			require.Equal(t, 1, holders)
			require.Zero(t, countsOf(t, q, pawl.DefaultQueue).Held, "the dead job let another one have its turn")
			for range 3 {
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			}
			checkNow(t, q)
		})
	}
}

// Rule: after a salvage, a lease has the key of its job. The payload of a job is no lease, though a page of payloads may
// be that of the leases.
func TestSalvageOfALeaseWithAnotherKey(t *testing.T) {
	for name, key := range map[string]string{"another": "b", "a payload": strings.Repeat("p", 40_000)} {
		t.Run(name, func(t *testing.T) {
			var jobs []*pawl.Envelope
			q, _ := contradicted(t, func(q *Queue) {
				require.NoError(t, q.SetLimits(t.Context(), pawl.DefaultQueue, &pawl.Limits{RunningPerKey: 1}))
				jobs = addKeyed(t, q, 2, "a")
			}, func(s *store) error {
				hurt(t, s.keys, limitKey(nil, 1, "a"))
				j, err := s.record(jobs[0].ID)
				require.NoError(t, err)
				require.NoError(t, s.ready.Delete(readyKey(nil, line{1, 2}, j.Envelope)))
				lease := leaseRow{token: 1, line: line{1, 2}, flags: hasKey, since: time.Now(), key: key}
				return s.leased.Put(j.ID[:], seal(j.ID[:], lease.append(nil)))
			})
			for range jobs {
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			}
			checkNow(t, q)
		})
	}
}

// Rule: after a salvage, a job whose record says that it is completed does not hold its key.
func TestSalvageOfACompletedHolder(t *testing.T) {
	from := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(from, ordered(pawl.OrderContinue))
	require.NoError(t, err)
	job := addKeyed(t, q, 1, "a")[0]
	require.NoError(t, q.Close())
	withBolt(t, from, func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		require.NoError(t, err)
		j, err := s.record(job.ID)
		require.NoError(t, err)
		j.HoldsKey, j.Completed, j.Retain = true, time.Now(), time.Hour
		return putRecord(&s, j.Envelope)
	})
	to, result := salvageTo(t, from)
	require.Equal(t, 1, result.Placed)
	require.False(t, find(t, openAt(t, to, nil), job.ID).HoldsKey)
}
