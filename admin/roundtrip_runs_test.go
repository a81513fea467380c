package admin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gopawl/pawl/internal/memdir"
	"github.com/stretchr/testify/require"
)

// runLines returns the lines of runs in an export, which contain everything stored of them.
func runLines(export string) (lines []string) {
	for line := range strings.Lines(export) {
		if strings.HasPrefix(line, `{"run"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Rule: an export of an app with runs in every state, and an import into a new file, preserve
// the runs: each continues to its correct end, and no completed step runs again. It makes no
// difference whether the app runs during the export, or whether IDs are kept.
func TestRoundTripOfRuns(t *testing.T) {
	for _, live := range []bool{true, false} {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("live %v keep %v", live, keep), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { roundTripOfRuns(t, live, keep) })
			})
		}
	}
}

func roundTripOfRuns(t *testing.T, live, keep bool) {
	from := everyRun(t)
	source := Of(from.q)
	if !live {
		copied := filepath.Join(memdir.New(t), "copy.db") // with a leased job
		var b bytes.Buffer
		require.NoError(t, source.Backup(context.Background(), &b))
		require.NoError(t, os.WriteFile(copied, b.Bytes(), 0o600))
		source = offlineFile(copied, nil)
		defer source.Close()
	}
	var b bytes.Buffer
	exported, err := Export(context.Background(), source, &b, nil)
	require.NoError(t, err)
	require.Equal(t, Exported{Queues: 1, Jobs: 12, Runs: 18}, exported)
	from.release()
	synctest.Wait()
	from.close()

	to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
	to.open("")
	target := Of(to.q)
	if !live {
		to.close()
		target = offlineFile(to.path, nil)
	}
	imported, err := Import(context.Background(), target, bytes.NewReader(b.Bytes()), &ImportOptions{KeepIDs: keep})
	require.NoError(t, err)
	require.Equal(t, Imported{Version: ExportVersion, Checked: 12, Jobs: 12, Runs: 18}, imported)
	again := exportOf(t, target)
	if keep {
		require.ElementsMatch(t, runLines(b.String()), runLines(again), "all rows are the same")
	} else {
		require.NotContains(t, again, from.hexOf(b.String()))
	}
	if live {
		to.close()
	} else {
		require.NoError(t, target.Close())
	}
	to.toTheEnd()
}

// hexOf returns the ID of some run in an export.
func (a *runsApp) hexOf(export string) string {
	_, rest, _ := strings.Cut(export, `{"run":{"run":"`)
	return rest[:36]
}
