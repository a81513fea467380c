package bolt

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rule: a job whose record is damaged while it is leased becomes dead, whatever verb settles
// it. It is not held forever.
func TestRecordDamagedWhileLeased(t *testing.T) {
	for name, verb := range map[string]func(*Queue, *pawl.Lease) error{
		"nack": func(q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Nack(0, errors.New("failed"))) },
		"abandon": func(q *Queue, l *pawl.Lease) error {
			return q.Settle(t.Context(), l.Abandon(pawl.ReasonExhausted, nil))
		},
		"release": func(q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Release()) },
		"snooze":  func(q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Snooze(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			q, err := Open(filepath.Join(t.TempDir(), "jobs.db"), nil)
			require.NoError(t, err)
			defer q.Close()
			e := add(t, q, nil)
			l := leaseOne(t, q)
			require.NoError(t, q.db.Update(func(tx *bbolt.Tx) error {
				jobs := tx.Bucket(bucketRoot).Bucket(bucketJobs)
				record := append([]byte(nil), jobs.Get(e.ID[:])...)
				record[len(record)-1] ^= 1
				return jobs.Put(e.ID[:], record)
			}))
			require.NoError(t, verb(q, l))
			require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
			_, err = q.Job(t.Context(), e.ID)
			require.ErrorIs(t, err, pawl.ErrCorrupt)
		})
	}
}
