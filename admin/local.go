package admin

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl/bolt"
)

// Of returns the [Admin] in the process that has the queue open. Its Close does nothing.
func Of(q *bolt.Queue) Admin { return local{direct{openQueue{q}}, &broadcaster{q: q}} }

// local is the result of Of.
type local struct {
	direct
	events *broadcaster
}

// openQueue is access to an open queue.
type openQueue struct{ q *bolt.Queue }

func (o openQueue) look(fn func(looker) error) error { return fn(o.q) }

func (o openQueue) change(fn func(*bolt.Queue) error) error { return fn(o.q) }

func (l local) Stats(ctx context.Context) (Stats, error) {
	s, err := l.direct.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	process := thisProcess(programName(), programStart)
	s.Process = &process
	return s, nil
}

// programStart is approximately when the program began.
var programStart = time.Now()

// programName returns the name of the program's file.
func programName() string { return filepath.Base(os.Args[0]) }

// thisProcess describes the app that runs this code.
func thisProcess(name string, started time.Time) Process {
	return Process{PID: os.Getpid(), Name: name, Version: libraryVersion(), Started: started}
}

func (l local) Workflows() Workflows { return l.runs(true) }

func (l local) Events(ctx context.Context) iter.Seq2[Event, error] { return l.events.listen(ctx) }

func (l local) Close() error { return nil }
