package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run starts another run and sends it a signal, each once, also after a crash. A refusal
// fails the step at once, and says why.
func (suite) SendAndStartFromARun(t *testing.T, k *kit) {
	asked := workflow.DefineSignal[string]("asked")
	other := workflow.Define("other", func(r *workflow.Run, n int) (string, error) { return asked.Wait(r, workflow.Forever) })
	first := workflow.Define("first", func(r *workflow.Run, n int) (pawl.ID, error) {
		run, err := other.StartFrom(r, "1", n)
		if err != nil {
			return run, err
		}
		if err := asked.SendFrom(r, run, "a"); err != nil {
			return run, err
		}
		_, err = word.Wait(r, workflow.Forever)
		if err != nil {
			return run, err
		}
		return run, asked.SendFrom(r, run, "late")
	})
	k.open(first, other)
	h := startAndSettle(k, first, "1", 7)
	k.crash()
	k.settle()
	started := find(k, other, "1")
	returns(k, started, "a")
	require.Zero(t, k.info(started.Run()).Unread, "it was sent once")
	require.Zero(t, k.info(started.Run()).Parent, "it is no child")
	say(k, h.Run(), "go on", "")
	_, err := outcome(k, find(k, first, "1"))
	require.ErrorIs(t, err, workflow.ErrNotRunning)
	require.Equal(t, 1, k.entries(h.Run())[len(k.entries(h.Run()))-1].Attempts)

	again := startAndSettle(k, first, "2", 8)
	_, err = outcome(k, again)
	require.ErrorIs(t, err, workflow.ErrConflict, "the ID has another input")
}
