package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rule: the expiry of an old effect does not end an effect that was done again until later.
func TestOldEndLeavesANewEffect(t *testing.T) {
	q := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), nil)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		now := time.Unix(1000, 0).UTC()
		x, err := begin(tx, now, settings{})
		require.NoError(t, err)
		key := effectKey(nil, &pawl.Envelope{Kind: "k", IdempotencyKey: "x"})
		anew := effectRow{done: now.Add(time.Hour)}
		x.putEffect(key, anew)
		end := effectEndKey(nil, anew.done, key)
		x.put(x.expiry, end, seal(end, nil))
		x.endEffect(key)
		row, err := x.effect(key)
		require.NoError(t, err)
		require.True(t, row.done.Equal(anew.done))
		return x.finish()
	}))
}
