// Package engine opens a queue by the place where its jobs are, as package database/sql opens a
// database. An engine registers itself when the program imports its package:
//
//	import (
//		"github.com/gopawl/pawl/engine"
//
//		_ "github.com/gopawl/pawl/beanstalkd" // beanstalkd://localhost:11300
//		_ "github.com/gopawl/pawl/bolt"       // jobs.db and file:jobs.db
//		_ "github.com/gopawl/pawl/inline"     // inline:
//		_ "github.com/gopawl/pawl/postgres"   // postgres://app@db/app and postgresql://app@db/app
//		_ "github.com/gopawl/pawl/sqlite"     // sqlite:app.sqlite
//	)
//
//	q, err := engine.Open(ctx, os.Getenv("QUEUE"))
//
// It is for programs that learn from their configuration where their jobs are. Another program
// calls bolt.Open or postgres.Open, which take options.
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

// Queue is a queue that its opener closes. The queues of this module and of package postgres also
// implement workflow.Store, dlq.Store, and admin.Store. Assert the interface that you need:
//
//	runs := workflow.Open(q.(workflow.Store), nil)
type Queue interface {
	pawl.Queue

	// Close stops the queue. Stop workers first.
	Close() error
}

// Opener opens a queue with the defaults of its engine. Where is the text that [Open] got; for the
// scheme [File] and those of [RegisterPath] it is the path alone. No error has a password.
type Opener func(ctx context.Context, where string) (Queue, error)

// File is the scheme of a place that is a path.
const File = "file"

var engines struct {
	mu    sync.RWMutex
	by    map[string]Opener // by scheme
	paths map[string]bool   // the schemes whose places are paths
}

// Register makes an engine open the places of a scheme. Engines call it when the program starts. It
// panics if the scheme has an engine.
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

// RegisterPath is [Register] for a scheme whose places are paths, as "sqlite:app.sqlite". The opener gets
// the path alone.
func RegisterPath(scheme string, open Opener) {
	Register(scheme, open)
	engines.mu.Lock()
	defer engines.mu.Unlock()
	if engines.paths == nil {
		engines.paths = make(map[string]bool)
	}
	engines.paths[scheme] = true
}

// scheme is what begins a place that is no path. A single letter is a drive of Windows.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):(//)?`)

// words begins a connection string such as "host=db user=app", which would be a file of that name.
var words = regexp.MustCompile(`(^|\s)(host|user|password|dbname|service)\s*=`)

// Open opens the queue at a place: a path such as "jobs.db" or "file:jobs.db", or a URL such as
// "postgres://app@db/app". The caller closes it.
//
// Errors: [pawl.ErrInvalid] for an empty place and for a scheme of which the program imports no
// engine; else those of the engine. No error has the place, which may contain a password, unless it
// is a path.
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
		return nil, invalid("it is a list of words; name a server by a URL such as postgres://app@db/app")
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

// Schemes returns the schemes that have an engine, in alphabetic order.
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
