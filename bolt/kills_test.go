package bolt

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/race"
)

// killed is a queue whose processes are killed.
var killed = kills.Engine{
	New:  func(t *testing.T) string { return filepath.Join(memoryFolder(t), "jobs.db") },
	Work: func(path string) (kills.Queue, error) { return Open(path, crashOptions()) },
	Look: func(t *testing.T, path string, fn func(q kills.Queue)) {
		q := openAt(t, path, crashOptions())
		require.NoError(t, q.Check(t.Context())) // compares the counts of groups with a walk too
		fn(q)
		require.NoError(t, q.Close())
	},
	Members: race.Fewer(10_000), // one goroutine compares the counts
}

func TestKilledWithResults(t *testing.T) { killed.Results(t) }
func TestKilledWithCursors(t *testing.T) { killed.Cursors(t) }
func TestKilledWithAGroup(t *testing.T)  { killed.Group(t) }
func TestKilledWithEdits(t *testing.T)   { killed.Edits(t) }
