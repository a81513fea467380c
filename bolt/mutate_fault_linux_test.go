package bolt

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rule: a memory fault in a mutation, caused by a file that is truncated while it is open, is
// not a mistake of the mutation. It poisons the queue and does not end the process.
func TestFaultInAMutation(t *testing.T) {
	page, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(page)) }()
	for _, r := range []*ride{
		{check: func(*ops) error {
			if page[0] != 0 {
				return errBoom
			}
			return nil
		}},
		{apply: func(*bbolt.Tx) error {
			if page[0] != 0 {
				return errBoom
			}
			return nil
		}},
	} {
		q := openTest(t, nil)
		err := q.Mutate(t.Context(), r, 0)
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorIs(t, q.Mutate(t.Context(), riding("row", nil), 0), pawl.ErrPoisoned)
	}
}
