package workflow

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// Rule: the stack of a panic is stored once, in the text of the error. Comparisons use only the
// message.
func TestChainOfAPanic(t *testing.T) {
	err := fmt.Errorf("tried: %w", &worker.PanicError{Value: io.EOF, Stack: "goroutine 7"})
	chain := chainOf(err)
	require.Equal(t, []errorText{{Type: "*fmt.wrapError", Text: "tried: panic: EOF"},
		{Type: "*worker.PanicError", Text: "panic: EOF"}, {Type: "*errors.errorString", Text: "EOF"}}, chain)
}

// Rule: a missing run matches pawl.ErrNotFound, as a missing job does, and the error says that
// it is a run.
func TestNoRunMatchesNotFound(t *testing.T) {
	require.ErrorIs(t, ErrNotFound, pawl.ErrNotFound)
	require.NotErrorIs(t, pawl.ErrNotFound, ErrNotFound)
	require.EqualError(t, ErrNotFound, "no such run")
}
