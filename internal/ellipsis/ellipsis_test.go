package ellipsis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/ellipsis"
)

func TestTruncate(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "…"}, {"abcd", 4, "abcd"}, {"abcdef", 5, "ab…"},
		{"ééé", 5, "é…"}, {"ééé", 6, "ééé"}, {"éééé", 6, "é…"}, {"\xff\xff\xff\xff\xff", 4, "\xff…"},
		{"\x80\x80\x80\x80", 3, "…"}, {"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80…"}, // no character starts here
	} {
		require.Equal(t, test.want, ellipsis.Truncate(test.text, test.n), "%q to %d", test.text, test.n)
	}
}
