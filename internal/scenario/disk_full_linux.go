package scenario

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// Rule: on a full disk a start returns the disk's error, and a step whose result does not fit
// has not ended: the run is retried, its job says why, and once there is space the step runs
// again under its key. Earlier steps do not.
//
// The limit applies to a process, so this test has its own process.
func (suite) Scenario12DiskFull(t *testing.T) {
	needsFile(t)
	path := os.Getenv(lifeVariable)
	if path == "" {
		require.Equal(t, "PASS", life(t, filepath.Join(memdir.New(t), "jobs.db")))
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, path)
		large := make([]byte, 900_000)
		f := workflow.Define("large", func(r *workflow.Run, in []byte) (int, error) {
			for _, name := range []string{"a", "b", "c"} {
				got, err := workflow.Step(r, name, func(context.Context) ([]byte, error) {
					k.effect(r)
					k.at("end of " + name)
					return large, nil
				})
				if err != nil {
					return 0, err
				}
				require.Len(t, got, len(large))
			}
			return 1, nil
		})
		end := k.gate("end of b")
		k.open(f)
		h := start(k, f, "1", nil)
		<-end.reached
		k.settle()
		require.Equal(t, []string{"a", "b"}, k.effects())

		info, err := os.Stat(path)
		require.NoError(t, err)
		var all syscall.Rlimit
		require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &all))
		little := all
		little.Cur = uint64(info.Size())
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &little))
		_, err = f.Start(t.Context(), k.e, "2", large)
		require.ErrorIs(t, err, under.ErrDisk)
		close(end.open)
		k.settle()
		job, err := k.q.Job(t.Context(), h.Run())
		require.NoError(t, err)
		require.Contains(t, job.History[len(job.History)-1].Error, under.ErrDisk.Error())
		require.False(t, k.info(h.Run()).Status.Ended())
		require.Len(t, k.entries(h.Run()), 1)
		require.NotContains(t, k.effects(), "c", "nothing goes on that is not written down")

		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &all))
		returns(k, h, 1)
		k.sameKeys("a", 1)
		require.Equal(t, []string{"a", "b", "c"}, slices.Compact(k.effects()))
		require.Greater(t, len(k.effects()), 3, "b ran again")
		require.Len(t, slices.Compact(k.keys()), 3)
	})
}
