package bolt

import (
	"bufio"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/hashicorp/go-hclog"
)

// roles are what child processes of these tests do.
var roles = kills.Roles{
	"hold":   holdRole,
	"create": createRole,
	"open":   openRole,
	"work":   workRole,
	"run":    runRole,
	"after":  afterRole,
	"notes":  notesRole,
}

func TestMain(m *testing.M) {
	kills.Main(killed.Roles(roles))
	debug.SetGCPercent(400) // heaps are small, and collections took a third of the time
	os.Exit(m.Run())
}

// readReports calls fn for every line that the test sends, until it closes the pipe.
func readReports(fn func(words []string) error) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := fn(strings.Fields(lines.Text())); err != nil {
			return err
		}
	}
	return nil
}

// quiet are options without a log.
func quiet() *Options { return &Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()} }

// memoryFolder returns a folder of the test, in memory where the system has that. Tests with
// hundreds of commits prove nothing about the disk.
func memoryFolder(t testing.TB) string {
	t.Helper()
	return memdir.New(t)
}
