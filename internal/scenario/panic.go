package scenario

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// panicsDeep is an app's function, a few frames below its step.
func panicsDeep(n int) (int, error) {
	if n == 0 {
		panic(io.ErrUnexpectedEOF)
	}
	return panicsDeep(n - 1)
}

// Rule: a journal keeps of a panic its message and the app's frames, the newest first, 2 KiB at
// most, and no callers of the step. The error of a run that a panic between its calls has
// blocked has the same. errors.Is finds the error in the panic.
func (suite) PanicInAJournal(t *testing.T) {
	for name, deep := range map[string]int{"short": 2, "deep": 1000} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("panics", func(r *workflow.Run, _ int) (int, error) {
				return workflow.Step(r, "s", func(context.Context) (int, error) { return panicsDeep(deep) }, workflow.MaxRetries(0))
			})
			between := workflow.Define("between", func(*workflow.Run, int) (int, error) { return panicsDeep(deep) })
			k.open(f, between)
			h := start(k, f, "1", 0)
			_, err := outcome(k, h)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			entries := k.entries(h.Run())
			require.Len(t, entries, 1)
			other := startAndSettle(k, between, "1", 0)
			require.Equal(t, workflow.Blocked, k.info(other.Run()).Status)
			for _, text := range []string{entries[0].Error, k.info(other.Run()).Error} {
				message, stack, found := strings.Cut(text, "\n\n")
				require.True(t, found)
				require.Equal(t, fmt.Sprintf("panic: %v", io.ErrUnexpectedEOF), message)
				require.LessOrEqual(t, len(stack), 2<<10)
				frames := strings.Split(stack, "\n")
				require.Regexp(t, `^goroutine \d+ .*:$`, frames[0])
				require.Contains(t, frames[1], "panicsDeep(")
				require.Contains(t, frames[2], "panic.go:")
				for _, frame := range frames {
					require.NotContains(t, frame, "pawl/workflow.")
				}
			}
		})
	}
}
