package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a failure with an absurd attempt number, which a damaged record may have, is written with a number
// that can be read.
func TestFailureWithAnAbsurdAttempt(t *testing.T) {
	key := []byte("key")
	for _, attempt := range []int64{1, 1<<31 - 1, 1 << 31, 1<<32 - 1, -1} {
		f, err := parseFailure(key, seal(key, appendFailure(nil, pawl.Failure{Attempt: int(attempt), Error: "boom"})))
		require.NoError(t, err, "%d", attempt)
		require.Equal(t, "boom", f.Error)
		require.Empty(t, f.Stack)
	}
}
