package bolt

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// Rule: View lets an app read its own data at one moment, from a queue and from a reader. The
// error of its function is returned unchanged.
func TestView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q := openAt(t, path, nil)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("app"))
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("value"))
	}))
	var got string
	look := func(tx *bbolt.Tx) error {
		got = string(tx.Bucket([]byte("app")).Get([]byte("key")))
		return nil
	}
	require.NoError(t, q.View(t.Context(), look))
	require.Equal(t, "value", got)
	mine := errors.New("mine")
	require.ErrorIs(t, q.View(t.Context(), func(*bbolt.Tx) error { return mine }), mine)
	require.PanicsWithValue(t, "ouch", func() {
		_ = q.View(t.Context(), func(*bbolt.Tx) error { panic("ouch") })
	})
	require.NoError(t, q.Close(), "no transaction is left open")

	r, err := OpenReader(path)
	require.NoError(t, err)
	got = ""
	require.NoError(t, r.View(t.Context(), look))
	require.Equal(t, "value", got)
	require.NoError(t, r.Close())
}
