package workflows

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// steps is how many steps a workflow has. Each adds one to what it is given and does
// nothing else, so the result shows that all of them ran.
const steps = 5

// synced is the durability of an engine whose steps are on the disk once they returned.
const synced = "synced"

// normal is what SQLite with WAL and synchronous=NORMAL promises.
const normal = "synced at checkpoints only; a power cut takes the steps since the last"

// engine is a library of durable workflows, set up in one way.
type engine struct {
	name       string // short, unique, as in "dbos-full"
	durability string // synced, or in a few words what it is instead
	settings   string // how it was set up, for the report
	modules    []string

	// open makes a store in dir, an empty folder, and starts what runs its workflows,
	// for so many callers at a time.
	open func(ctx context.Context, dir string, callers int) (store, error)
}

// store runs workflows and keeps them in a folder.
type store interface {
	// run starts a workflow under an ID that is not used yet, waits until it is done and
	// returns its result. Many callers may be in it at a time.
	run(ctx context.Context, id string, input int) (int, error)

	// close stops what runs workflows; none is running. After it nothing is left to write.
	close() error
}

// engines are all that can be compared, this library first.
func engines() []engine {
	return slices.Concat([]engine{pawlEngine()}, goWorkflows(), dbosEngines())
}

// weaker says that an engine promises less than pawl does.
func (e engine) weaker() bool { return e.durability != synced }

// promise is the durability in a word.
func (e engine) promise() string {
	if e.weaker() {
		return "weaker"
	}
	return synced
}

// versions are those of the modules that an engine consists of.
func (e engine) versions() string {
	var all []string
	for _, path := range e.modules {
		name := path[strings.LastIndex(path, "/")+1:]
		if path == "modernc.org/sqlite" {
			name = "modernc.org/sqlite"
		}
		all = append(all, fmt.Sprintf("%s %s", name, moduleVersion(path)))
	}
	return strings.Join(all, ", ")
}

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			switch {
			case dep.Path != path:
			case dep.Replace != nil:
				return "(this checkout)"
			default:
				return dep.Version
			}
		}
	}
	return "(unknown)"
}
