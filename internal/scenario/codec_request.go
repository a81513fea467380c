package scenario

import (
	"crypto/sha256"
	"strings"
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

// Rule: a request and its answer are encoded. A request that cannot be decoded blocks the run: it is neither
// rejected nor lost, and is answered once the key is there.
func (suite) UpdateNeedsTheKey(t *testing.T, k *kit) {
	k.codec = cipherOf("a")
	f := account(k)
	k.open(f)
	h := startAndSettle(k, f, "1", 100)
	pays(k, h.Run(), 30, "first", 70)
	_, err := call(k, h.Run(), 80, "bad")
	require.ErrorIs(t, err, workflow.ErrRejected)
	rows, err := k.e.Rows(t.Context(), h.Run(), "")
	require.NoError(t, err)
	encoded := 0
	for _, row := range rows.Rows {
		var answer []any
		if !strings.HasSuffix(row.In, "answers") {
			continue
		}
		require.NoError(t, driver.DecodePayload(row.Value, &answer))
		if value, ok := answer[0].([]byte); ok && value != nil {
			require.True(t, workflow.Encoded(value))
			encoded++
		}
	}
	require.Equal(t, 1, encoded)

	sender := workflow.Open(k.q, &workflow.Options{Codec: cipherOf("c")})
	require.NoError(t, withdraw.Send(t.Context(), sender, h.Run(), 20, "second"))
	k.settle()
	info := k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `no key has the ID "c"`)
	require.Equal(t, 1, info.Unread)
	k.close()
	k.codec = cipherOf("a", "c")
	k.again()
	pays(k, h.Run(), 20, "second", 50)
	k.close()
	k.codec = cipherOf("b")
	k.again()
	_, err = call(k, h.Run(), 20, "second")
	require.ErrorIs(t, err, workflow.ErrCodec)
	require.NotErrorIs(t, err, workflow.ErrRejected)
}
