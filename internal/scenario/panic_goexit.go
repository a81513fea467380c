package scenario

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// endsHere ends its goroutine, as t.FailNow does.
func endsHere() { runtime.Goexit() }

// Rule: if a function's goroutine was ended, the journal has the app's frames, and so the place
// where it ended. This holds in a branch too.
func (suite) GoexitInAJournal(t *testing.T) {
	for name, fn := range map[string]func(*workflow.Run, int) (int, error){
		"function": func(*workflow.Run, int) (int, error) { endsHere(); return 1, nil },
		"branch": func(r *workflow.Run, _ int) (int, error) {
			return workflow.Go(r, "b", func(*workflow.Run) (int, error) { endsHere(); return 1, nil }).Wait(r)
		},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("ends", fn)
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			message, stack, found := strings.Cut(k.info(h.Run()).Error, "\n\n")
			require.True(t, found)
			require.Equal(t, "panic: runtime.Goexit was called", message)
			frames := strings.Split(stack, "\n")
			require.Contains(t, frames[1], "endsHere(")
			require.Contains(t, frames[2], "panic_goexit.go:")
			require.NotContains(t, stack, "pawl/workflow.")
		})
	}
}
