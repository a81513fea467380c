package guide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/workflow"
)

// Rule: the guide's engine encrypts the values of its runs.
func TestGuideCipher(t *testing.T) {
	q := memory.New(nil)
	defer q.Close()
	open := func(keys map[string][]byte) (*workflow.Engine, error) {
		c, err := workflow.NewCipher("2026-11", keys) // 32 random bytes for each ID
		if err != nil {
			return nil, err
		}
		return workflow.Open(q, &workflow.Options{Codec: c}), nil
	}
	_, err := open(nil)
	require.Error(t, err)
	e, err := open(map[string][]byte{"2026-11": make([]byte, workflow.CipherKeyBytes)})
	require.NoError(t, err)
	h, err := Cart.Start(t.Context(), e, "ada", "ada")
	require.NoError(t, err)
	input, err := workflow.Read(q).Input(t.Context(), h.Run())
	require.NoError(t, err)
	require.True(t, workflow.Encoded(input))
}
