package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rule: a leased job of a queue that keeps the order of its keys holds its key, also if the row of the key is lost or
// damaged.
func TestALeasedJobHoldsItsKeyWithoutTheRow(t *testing.T) {
	for name, hit := range map[string]func(b *bbolt.Bucket, key, row []byte) error{
		"sound":   func(*bbolt.Bucket, []byte, []byte) error { return nil },
		"lost":    func(b *bbolt.Bucket, key, _ []byte) error { return b.Delete(key) },
		"damaged": func(b *bbolt.Bucket, key, row []byte) error { return b.Put(key, append(row, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {InOrder: pawl.OrderHold}}})
			var ids []pawl.ID
			for range 2 {
				ids = append(ids, add(t, q, func(e *pawl.Envelope) { e.Key = "k" }).ID)
			}
			lease := fetch(t, q, 1)[0]
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				keys := tx.Bucket(bucketRoot).Bucket(bucketKeys)
				key, row := keys.Cursor().First()
				require.NotNil(t, key)
				return hit(keys, append([]byte(nil), key...), append([]byte(nil), row...))
			}))
			for i, id := range ids {
				e, err := q.Job(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, i == 0, e.HoldsKey, e.State)
			}
			require.NoError(t, q.Settle(t.Context(), lease.Ack()))
		})
	}
}
