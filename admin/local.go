package admin

import (
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Of is the [Admin] in the process that has the queue. Its Stats names no Process: that is
// whoever serves. Close does nothing, and events are of that process.
func Of(q *bolt.Queue) Admin { return local{q, &audience{q: q}} }

// local is what Of returns.
type local struct {
	q        *bolt.Queue
	audience *audience
}

func (l local) Stats(ctx context.Context) (Stats, error) {
	s, err := l.q.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	process := thisProcess(programName(), programStart)
	return Stats{Stats: s, Process: &process}, nil
}

// programStart is when the program began, or so.
var programStart = time.Now()

// programName is that of the program's file.
func programName() string { return filepath.Base(os.Args[0]) }

// thisProcess is the app that runs this.
func thisProcess(name string, started time.Time) Process {
	return Process{PID: os.Getpid(), Name: name, Version: libraryVersion(), Started: started}
}

func (l local) List(ctx context.Context, q Query) (Page, error) { return listPage(ctx, l.q, q) }

func (l local) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) { return l.q.Job(ctx, id) }

func (l local) FindIDs(ctx context.Context, part string) ([]pawl.ID, error) {
	return l.q.FindIDs(ctx, part, MaxFound)
}

func (l local) Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error) {
	return do(ctx, l.q, a, ids)
}

func (l local) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error {
	return l.q.Enqueue(ctx, jobs...)
}

func (l local) Pause(ctx context.Context, queue string) error { return l.q.Pause(ctx, queue) }

func (l local) Resume(ctx context.Context, queue string) error { return l.q.Resume(ctx, queue) }

func (l local) Reap(ctx context.Context) (int, error) { return l.q.Reap(ctx) }

func (l local) Effects(ctx context.Context, after string) ([]bolt.Effect, string, error) {
	return l.q.Effects(ctx, after, effectsPage)
}

func (l local) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []bolt.Effect) error {
	return l.q.Restore(ctx, jobs, effects)
}

func (l local) Check(ctx context.Context) error { return l.q.Check(ctx) }

func (l local) Backup(ctx context.Context, w io.Writer) error { return backup(ctx, l.q, w) }

func (l local) Events(ctx context.Context) iter.Seq2[Event, error] { return l.audience.listen(ctx) }

func (l local) Close() error { return nil }
