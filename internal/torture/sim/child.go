package sim

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

const role = "simulate"

// longest is the limit of one case in CPU time. It usually takes a tenth of a second.
const longest = 30 * time.Second

// opener opens the queues of children. The tests of this package plant faults with it.
var opener = Real

func init() { harness.Role(role, serve) }

// serve is the role of a child. It reads tasks, one per line, and runs them inside a test.
func serve(harness.Args) error {
	debug.SetGCPercent(400)
	testing.Init()
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "TestTasks", F: tasks}}, nil, nil)
	return nil
}

func tasks(t *testing.T) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var do task
		if err := json.Unmarshal(lines.Bytes(), &do); err != nil {
			t.Fatal(err)
		}
		// One processor is fastest. Some cases use two.
		processors := 1
		if do.Seed%8 == 3 {
			processors = 2
		}
		if runtime.GOMAXPROCS(0) != processors {
			runtime.GOMAXPROCS(processors)
		}
		wrong := do.carryOut(func(c *Case) error {
			defer harness.EndAfter(longest)()
			return Simulate(t, c, do.Dir, opener)
		})
		text, err := json.Marshal(wrong)
		if err != nil {
			t.Fatal(err)
		}
		harness.Emit(string(text))
	}
}
