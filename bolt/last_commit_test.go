package bolt

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a queue knows how its last commit ended, so that a readiness check does.
func TestLastCommit(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	opened, err := q.LastCommit()
	require.NoError(t, err)

	full := &fs.PathError{Op: "write", Path: "jobs.db", Err: syscall.ENOSPC}
	enqueue := func() error {
		return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})
	}
	require.NoError(t, enqueue())
	stored, err := q.LastCommit()
	require.NoError(t, err)
	require.True(t, stored.After(opened))

	replaceCommit(t, q, func(*bbolt.Tx) error { return full })
	require.ErrorIs(t, enqueue(), ErrDisk)
	failed, err := q.LastCommit()
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.True(t, failed.After(stored))

	require.ErrorIs(t, enqueue(), ErrDisk)
	replaceCommit(t, q, (*bbolt.Tx).Commit)
	require.Error(t, q.Update(t.Context(), func(*bbolt.Tx) error { return errors.New("refused before the commit") }))
	_, err = q.LastCommit()
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, enqueue())
	_, err = q.LastCommit()
	require.NoError(t, err)
}
