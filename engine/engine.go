// Package engine opens a queue at a place, which is a path or a URL. An engine registers itself when
// the program imports its package, as a driver of package database/sql does:
//
//	import (
//		"github.com/gopawl/pawl/engine"
//
//		_ "github.com/gopawl/pawl/beanstalkd" // beanstalkd://localhost:11300
//		_ "github.com/gopawl/pawl/bolt"       // jobs.db and file:jobs.db
//		_ "github.com/gopawl/pawl/inline"     // inline:
//		_ "github.com/gopawl/pawl/jetstream"  // nats://localhost:4222
//		_ "github.com/gopawl/pawl/postgres"   // postgres://app@db/app and postgresql://app@db/app
//		_ "github.com/gopawl/pawl/redis"      // redis://localhost:6379/0
//		_ "github.com/gopawl/pawl/servicebus" // servicebus:Endpoint=sb://app.servicebus.windows.net/;...
//		_ "github.com/gopawl/pawl/sqlite"     // sqlite:app.sqlite
//	)
//
//	q, err := engine.Open(ctx, os.Getenv("QUEUE"))
//
// Use it if the configuration of a program decides where the jobs are. Otherwise call the Open
// function of the engine, such as bolt.Open or postgres.Open, which takes options.
package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gopawl/pawl"
)

// Queue is a queue that its caller closes. The queues of packages bolt, postgres, and sqlite also
// implement workflow.Store, dlq.Store, and admin.Store. The queue of package inline implements the
// first two, and the queue of package redis the last two. Assert the interface that you need:
//
//	runs := workflow.Open(q.(workflow.Store), nil)
type Queue interface {
	pawl.Queue

	// Close stops the queue. Stop workers first.
	Close() error
}

// Opener opens a queue with the default options of its engine. For the scheme [File] and the schemes of
// [RegisterPath], where is only what follows the scheme. For other schemes, where is the whole place. An error
// must not contain a password.
type Opener func(ctx context.Context, where string) (Queue, error)

// File is the scheme of a path without a scheme, such as "jobs.db".
const File = "file"

var engines struct {
	mu    sync.RWMutex
	by    map[string]Opener // by scheme
	paths map[string]bool   // the schemes of RegisterPath
}

// Register makes an engine open the places of a scheme. An engine calls it in an init function.
// Register panics if the scheme already has an engine.
func Register(scheme string, open Opener) {
	engines.mu.Lock()
	defer engines.mu.Unlock()
	if _, taken := engines.by[scheme]; taken {
		panic("engine: two engines for the scheme " + scheme)
	}
	if engines.by == nil {
		engines.by = make(map[string]Opener)
	}
	engines.by[scheme] = open
}

// RegisterPath is like [Register] for a scheme whose places are not URLs: paths, such as "sqlite:app.sqlite", and the
// connection strings of "servicebus:". The opener gets only what follows the scheme.
func RegisterPath(scheme string, open Opener) {
	Register(scheme, open)
	engines.mu.Lock()
	defer engines.mu.Unlock()
	if engines.paths == nil {
		engines.paths = make(map[string]bool)
	}
	engines.paths[scheme] = true
}

// scheme matches the scheme that begins a place. A single letter is a drive of Windows instead.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):(//)?`)

// words matches a connection string such as "host=db user=app" or "Endpoint=sb://app;SharedAccessKey=...", which is not
// a path.
var words = regexp.MustCompile(`(?i)(^|[\s;])(host|user|password|dbname|service|endpoint|sharedaccesskey)\s*=`)

// Open opens the queue at a place: a path such as "jobs.db" or "file:jobs.db", or a URL such as
// "postgres://app@db/app". The caller closes it.
//
// Errors: [pawl.ErrInvalid] for an empty place, and for a scheme whose engine the program does not
// import; otherwise the errors of the engine. An error contains the place only if it is a path, since
// a URL may contain a password.
func Open(ctx context.Context, where string) (Queue, error) {
	name, slashes, path := File, false, true
	if parts := scheme.FindStringSubmatch(where); parts != nil {
		name, slashes = strings.ToLower(parts[1]), parts[2] != ""
		engines.mu.RLock()
		path = name == File || engines.paths[name]
		engines.mu.RUnlock()
		if path {
			where = where[len(parts[0]):]
		} else {
			where = name + where[len(parts[1]):]
		}
	}
	engines.mu.RLock()
	open, known := engines.by[name]
	engines.mu.RUnlock()
	switch {
	case where == "":
		return nil, invalid("it is empty; name a file or a URL")
	case name == File && words.MatchString(where):
		return nil, invalid("it is a list of words; name a server by a URL such as postgres://app@db/app, or put servicebus: in front")
	case !known && name == File:
		return nil, invalid("it is a file, and the program has no engine for files; import _ %q", "github.com/gopawl/pawl/bolt")
	case !known:
		return nil, invalid("the program has no engine for %s:, only for %s; is the import of one forgotten, such as _ %q?",
			name, strings.Join(Schemes(), ", "), "github.com/gopawl/pawl/postgres")
	case !path && !slashes && where != name+":":
		return nil, invalid("%s: is followed by //", name)
	}
	return open(ctx, where)
}

// Schemes returns the schemes that have an engine, in alphabetical order.
func Schemes() (all []string) {
	engines.mu.RLock()
	defer engines.mu.RUnlock()
	for name := range engines.by {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("open queue: %w", &pawl.InvalidError{Field: "place", Reason: fmt.Sprintf(format, args...)})
}
