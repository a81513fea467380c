// Package scenario proves the promises of package workflow over any queue: see [Run]. Each test
// has a queue, an engine over it and a worker in a bubble of testing/synctest.
package scenario

import (
	"context"
	"flag"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Store is a kind of queue.
type Store struct {
	// Open opens the queue of a path, for as long as its life lasts. Whoever opens it again is
	// the successor, and takes its leases back at once.
	Open func(t testing.TB, path string, o Options) Queue

	// ErrDisk is the error of a full disk, if the path is that of a file of package bolt.
	ErrDisk error

	// Beside reports whether transactions of the app run beside those of the queue, so that they
	// do not wait for a mutation of another run.
	Beside bool

	// Volatile reports whether jobs end with the process, and each mutation is a commit of its own.
	// The tests that kill a process, or that end it within a commit, are left out.
	Volatile bool

	// Without are tests that are left out, with the reasons.
	Without map[string]string

	// Env is what a process of its own needs to open the same queues.
	Env []string
}

// Options are the settings of a queue; zero means the default.
type Options struct {
	Now        func() time.Time
	MaxCrashes int
}

// Queue is a queue with data of the app, which is counters.
type Queue interface {
	pawl.Queue
	driver.Able
	workflow.Transactor[Tx]

	Cancel(ctx context.Context, id pawl.ID) error
	Counts(ctx context.Context) (map[string]pawl.Counts, error) // by queue
	Check(ctx context.Context) error
	Close() error

	// Counters returns the counters.
	Counters(ctx context.Context) (map[string]uint64, error)

	// Commits returns a number that grows with each commit that changes rows of workflows.
	Commits(ctx context.Context) (int, error)

	// Damage flips the last byte of the record of a job. A second call repairs it. The error is
	// [pawl.ErrNotFound] if there is no such job.
	Damage(ctx context.Context, id pawl.ID) error

	// Crash ends the queue as a crash does, within Apply or OnCommit of a mutation. Nothing is
	// durable that was not durable before. It may panic.
	Crash()
}

// Tx is a transaction of the app.
type Tx interface {
	// Count adds 1 to a counter and returns it.
	Count(name string) (uint64, error)

	// OnCommit has fn called once the transaction is durable.
	OnCommit(fn func())
}

// FewerSeeds has the tests of random histories try fewer of them than over package bolt, unless the
// command says how many.
func FewerSeeds(t *testing.T) {
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, n := range map[string]string{"change.pairs": "20", "signal.seeds": "5", "model.seeds": "10", "places.seeds": "2"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, n); err != nil {
			t.Fatal(err)
		}
	}
}

// under is the kind of queue under test. A test binary has one.
var under Store

// suite has the tests as its methods. A test with a kit runs in a bubble.
type suite struct{}

// limitsFiles is the test that bounds the files of the whole process for a while.
const limitsFiles = "Scenario12DiskFull"

// Run runs all tests over a kind of queue, in parallel.
func Run(t *testing.T, s Store) {
	percent := debug.SetGCPercent(400) // heaps are small, and collections took a third of the time
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	under = s
	tests := reflect.ValueOf(suite{})
	for i := range tests.NumMethod() {
		name := tests.Type().Method(i).Name
		if reason := s.Without[name]; reason != "" {
			t.Run(name, func(t *testing.T) { t.Skip(reason) })
			continue
		}
		t.Run(name, func(t *testing.T) {
			if name != limitsFiles {
				t.Parallel()
			}
			switch test := tests.Method(i).Interface().(type) {
			case func(*testing.T, *kit):
				bubble(t, test)
			case func(*testing.T):
				test(t)
			}
		})
	}
}
