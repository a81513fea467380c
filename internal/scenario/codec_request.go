package scenario

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a start finds a run that has restarted, and tells another input from its own. No checksum of an
// input is taken for an encoded value, not even one that begins as such a value does.
func (suite) StartFindsWhatHasRestarted(t *testing.T) {
	n := 0
	for {
		b, err := driver.EncodePayload(n)
		require.NoError(t, err)
		if sum := sha256.Sum256(append([]byte("v"), b...)); workflow.Encoded(sum[:]) {
			break
		}
		n++
	}
	for name, c := range map[string]workflow.Codec{"no codec": nil, "cipher": cipherOf("a")} {
		sub(t, name, func(t *testing.T, k *kit) {
			k.codec = c
			f := workflow.Define("again", func(r *workflow.Run, n int) (int, error) {
				if n < 0 {
					return n, nil
				}
				return 0, workflow.Restart(r, -1)
			})
			k.open(f)
			h := start(k, f, "1", n)
			returns(k, h, -1)
			require.Equal(t, h.Run(), start(k, f, "1", n).Run())
			_, err := f.Start(t.Context(), k.e, "1", n+1)
			require.ErrorIs(t, err, workflow.ErrConflict)
		})
	}
}

// Rule: a run that finds another one by its input, and cannot decode that, is blocked. Its step does not fail.
func (suite) StartFromARunNeedsTheKey(t *testing.T, k *kit) {
	k.codec = cipherOf("a")
	other := workflow.Define("other", func(_ *workflow.Run, n int) (int, error) { return n, nil })
	first := workflow.Define("first", func(r *workflow.Run, n int) (int, error) {
		_, err := other.StartFrom(r, "1", n)
		return n, err
	})
	k.open(first, other)
	returns(k, start(k, other, "1", 7), 7)
	k.close()
	k.codec = cipherOf("b")
	k.again()
	h := startAndSettle(k, first, "1", 7)
	require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
	require.Contains(t, k.info(h.Run()).Error, `no key has the ID "a"`)
	k.close()
	k.codec = cipherOf("b", "a")
	k.again()
	returns(k, find(k, first, "1"), 7)
}
