package admin

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// Rule: lines are returned unchanged, with the offsets at which they can be read again in any
// order, however long they are and wherever the buffer ends.
func TestLines(t *testing.T) {
	want := []string{"a", "", strings.Repeat("b", 64<<10), strings.Repeat("c", 64<<10-1), strings.Repeat("d", 200_000), "\r", "last"}
	for _, end := range []string{"", "\n"} {
		l := newLines(strings.NewReader(strings.Join(want, "\n") + end))
		var offsets []int64
		for _, line := range want {
			offsets = append(offsets, l.next)
			text, err := l.read()
			require.NoError(t, err)
			require.Equal(t, line, string(text))
		}
		_, err := l.read()
		require.ErrorIs(t, err, io.EOF)
		for _, i := range []int{6, 0, 2, 0, 1, 2, 5, 4, 3, 3} {
			text, err := l.at(offsets[i])
			require.NoError(t, err)
			require.Equal(t, want[i], string(text))
			if i == 2 || i == 4 {
				require.EqualValues(t, i+1, l.number(offsets[i]), "and asking for its number is in nobody's way")
			}
		}
	}
}

// Rule: a line longer than any job needs is refused before it is completely read.
func TestLinesAreBounded(t *testing.T) {
	endless := struct {
		io.Reader
		io.Seeker
	}{zeros{}, nil}
	l := newLines(endless)
	l.max = 1 << 20
	_, err := l.read()
	require.ErrorIs(t, err, errLongLine)
	require.Less(t, cap(l.text), 3<<20)

	l = newLines(strings.NewReader(strings.Repeat("x", 100) + "\n" + strings.Repeat("x", 101) + "\n"))
	l.max = 100
	text, err := l.read()
	require.NoError(t, err, "one that is just as long")
	require.Len(t, text, 100)
	_, err = l.read()
	require.ErrorIs(t, err, errLongLine)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// Rule: a failing disk is not mistaken for the end of an export, or for an invalid export.
func TestLinesReportReadErrors(t *testing.T) {
	failed := errors.New("input/output error")
	l := newLines(struct {
		io.Reader
		io.Seeker
	}{io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(failed)), nil})
	_, err := l.read()
	require.NoError(t, err)
	_, err = l.read()
	require.ErrorIs(t, err, failed)
}
