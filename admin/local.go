package admin

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"time"
)

// Of returns the [Admin] in the process that has the queue open. Its Close does nothing.
func Of(q Store) Admin {
	l := local{direct: direct{q: q, live: true, flows: true}}
	if q, ok := q.(Listener); ok {
		l.events = &broadcaster{q: q}
	}
	return l
}

// local is the result of Of.
type local struct {
	direct
	events *broadcaster // nil for a queue without events
}

func (l local) Stats(ctx context.Context) (Stats, error) {
	s, err := l.direct.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	process := thisProcess(programName(), programStart)
	s.Process = &process
	if q, ok := l.q.(Counter); ok {
		totals := q.Totals()
		s.Totals = &totals
	}
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

func (l local) Events(ctx context.Context) iter.Seq2[Event, error] {
	if l.events == nil {
		return noEvents(&UnsupportedError{"events"})
	}
	return l.events.listen(ctx)
}

func (l local) Close() error { return nil }
