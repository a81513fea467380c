package workflow

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a cipher reads what it encrypts, hides the value and does not repeat itself, and reads nothing else: no
// changed byte, and nothing under another key or ID.
func TestCipher(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, CipherKeyBytes) }
	c, err := NewCipher("one", map[string][]byte{"one": key(1), "two": key(1), "end": key(3)})
	require.NoError(t, err)
	for _, value := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("secret"), 1000)} {
		stored, err := c.Encode(value)
		require.NoError(t, err)
		again, err := c.Encode(value)
		require.NoError(t, err)
		require.NotEqual(t, stored, again)
		require.NotContains(t, string(stored), "secret")
		read, err := c.Decode(stored)
		require.NoError(t, err)
		require.Equal(t, string(value), string(read))
		for i := range min(len(stored), 50) {
			bad := bytes.Clone(stored)
			bad[i] ^= 1
			_, err := c.Decode(bad)
			require.Error(t, err, i)
			_, err = c.Decode(stored[:i])
			require.Error(t, err, i)
		}
		_, err = c.Decode(bytes.Replace(stored, []byte("one"), []byte("two"), 1))
		require.ErrorContains(t, err, `key "two" does not fit`) // the ID is authenticated, too
	}
}

func TestCipherIsRefused(t *testing.T) {
	good := make([]byte, CipherKeyBytes)
	for _, c := range []struct {
		current string
		keys    map[string][]byte
		want    string
	}{
		{"a", nil, `"a" is to encrypt`},
		{"a", map[string][]byte{"b": good}, `"a" is to encrypt`},
		{"", map[string][]byte{"": good}, "one of 0 bytes"},
		{"a", map[string][]byte{"a": good[1:]}, "31 bytes"},
		{"a", map[string][]byte{"a": good, string(make([]byte, 256)): good}, "one of 256 bytes"},
	} {
		_, err := NewCipher(c.current, c.keys)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
}
