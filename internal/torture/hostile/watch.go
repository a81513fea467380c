package hostile

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/usage"
)

// The limits of a step.
const (
	mostCPU   = 2 * time.Second // CPU time, because the machine may be busy
	mostWall  = time.Minute
	mostBytes = 256 << 20 // allocated in total

	// mostHeld limits the memory of the process, so that the system does not kill it.
	mostHeld = 1 << 30
)

// watch limits the steps of a child process.
type watch struct {
	cpu   time.Duration
	wall  time.Duration
	bytes uint64

	mu      sync.Mutex
	name    string
	began   time.Time
	active  bool
	onLimit func(error) // ends the process
}

func newWatch(onLimit func(error)) *watch {
	return &watch{cpu: mostCPU, wall: mostWall, bytes: mostBytes, onLimit: onLimit}
}

// start makes a step that does not end end the process.
func (w *watch) start() {
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			w.mu.Lock()
			name, took, active := w.name, time.Since(w.began), w.active
			w.mu.Unlock()
			var wrong string
			switch held := usage.Held(); {
			case !active:
				continue
			case took > w.wall:
				wrong = fmt.Sprintf("it has not ended after %v", took.Round(time.Second))
			case held > mostHeld:
				wrong = fmt.Sprintf("the process holds %d MiB", held>>20)
			default:
				continue
			}
			stacks := make([]byte, 1<<20)
			w.onLimit(fmt.Errorf("%s: %s\n%s", name, wrong, stacks[:runtime.Stack(stacks, true)]))
			return
		}
	}()
}

// step runs a step. Its error is the step's own, a panic, or a limit of time or memory.
func (w *watch) step(name string, run func() error) error {
	w.mu.Lock()
	w.name, w.began, w.active = name, time.Now(), true
	w.mu.Unlock()
	cpu, bytes := usage.CPU(), usage.Allocated()
	defer func() {
		w.mu.Lock()
		w.active = false
		w.mu.Unlock()
	}()
	if err := harness.Guard(run); err != nil {
		return err
	}
	if took := usage.CPU() - cpu; took > w.cpu {
		return fmt.Errorf("it took %v", took)
	}
	if used := usage.Allocated() - bytes; used > w.bytes {
		defer debug.FreeOSMemory() // it must not count for the next step
		return fmt.Errorf("it allocated %d MiB", used>>20)
	}
	return nil
}
