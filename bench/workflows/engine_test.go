package workflows

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bench/system"
	"github.com/gopawl/pawl/internal/need"
)

func TestMain(m *testing.M) {
	if Child() {
		return
	}
	os.Exit(m.Run())
}

// Every engine runs workflows of several callers, in a child, to their right results.
func TestEngines(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := trial{Engine: e.name, Callers: 3, Count: 6}.start(t.Context(), dir)
			require.NoError(t, err)
			require.Equal(t, 6, f.Workflows)
			require.GreaterOrEqual(t, f.All, f.Workflows+2, "each caller warms up, and the last of that opens the window")
			require.Positive(t, f.Took)
			require.LessOrEqual(t, f.P50, f.P99)
			size, err := folderSize(dir)
			require.NoError(t, err)
			require.Positive(t, size, "the engine keeps its workflows in the folder it was given")
		})
	}
}

// Engines on a server run workflows, too, where the server is installed.
func TestEnginesOnAServer(t *testing.T) {
	folder := func(t *testing.T) string {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // the server may run as another user
		return dir
	}
	server, _, err := system.StartPostgres(t.Context(), folder(t))
	if errors.Is(err, system.ErrAbsent) {
		need.Server(t, err.Error())
	}
	require.NoError(t, err)
	require.NoError(t, server.Stop())
	for _, e := range onServer() {
		t.Run(e.name, func(t *testing.T) {
			f, err := trial{Engine: e.name, Callers: 3, Count: 6}.start(t.Context(), folder(t))
			require.NoError(t, err)
			require.Equal(t, 6, f.Workflows)
		})
	}
}

// An engine that says it syncs does so for each step of a lone caller, since each waits for
// the one before; one that says it does not syncs less.
func TestDurabilityIsAsTheEnginesSay(t *testing.T) {
	if _, err := tracer(""); err != nil {
		need.Server(t, err.Error())
	}
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			const workflows = 20
			f, n, err := trial{Engine: e.name, Callers: 1, Count: workflows}.startTraced(t.Context(), t.TempDir())
			require.NoError(t, err)
			require.Equal(t, workflows, f.Workflows)
			if e.weaker() {
				require.Less(t, n, workflows*steps)
			} else {
				require.GreaterOrEqual(t, n, workflows*steps)
			}
		})
	}
}

// Names tell the engines apart, and the report knows what each of them is.
func TestEnginesAreDescribed(t *testing.T) {
	seen := make(map[string]bool)
	for _, e := range engines() {
		require.False(t, seen[e.name], e.name)
		seen[e.name] = true
		require.NotEmpty(t, e.durability, e.name)
		require.NotEmpty(t, e.settings, e.name)
		require.NotEmpty(t, e.modules, e.name)
	}
	require.True(t, seen[pawlName])
	require.True(t, seen[dbosFull])
}

// A child that fails says why, and its parent repeats it.
func TestFailureOfAChildIsReported(t *testing.T) {
	_, err := trial{Engine: "nobody", Callers: 1, Count: 1}.start(t.Context(), t.TempDir())
	require.ErrorContains(t, err, `no engine "nobody"`)
}
