package system

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteTask is a job. Backlite stores tasks as JSON, so the payload becomes base64.
type backliteTask struct {
	Payload []byte
}

// Config has no Retention, so a finished task is deleted and not moved to another table.
func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "jobs", MaxAttempts: 3, Timeout: time.Minute}
}

type backliteQueue struct {
	db *sql.DB

	// client is the one whose workers run, so that adding a task wakes them: backlite
	// never polls. The number of workers is fixed when a client is made, so each Work
	// makes one; the lock keeps a task from being added through the client before it,
	// which would wake nobody.
	mu     sync.RWMutex
	client *backlite.Client
}

func newBacklite(name string, j journal) System {
	return System{
		Name:       name,
		Durability: j.durability,
		Settings:   j.String() + ", go-sqlite3, 1 connection, woken by each enqueue, no retention",
		Version:    moduleVersion("github.com/mikestefanello/backlite") + " (" + mattnVersion() + ")",
		Open: func(_ context.Context, dir string, _ *Server) (Queue, error) {
			db, err := openMattn(dir, j)
			if err != nil {
				return nil, err
			}
			q := &backliteQueue{db: db}
			if q.client, err = q.newClient(1, slog.LevelError); err == nil {
				err = q.client.Install()
			}
			if err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return q, nil
		},
	}
}

func (q *backliteQueue) newClient(workers int, level slog.Leveler) (*backlite.Client, error) {
	return backlite.NewClient(backlite.ClientConfig{
		DB:           q.db,
		Logger:       logAbove(level),
		NumWorkers:   workers,
		ReleaseAfter: 10 * time.Minute, // as in the README; only for tasks that hang
	})
}

// use makes client the one that tasks are added through.
func (q *backliteQueue) use(client *backlite.Client) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.client = client
}

func (q *backliteQueue) add(ctx context.Context, tasks ...backlite.Task) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	_, err := q.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) Enqueue(ctx context.Context, payload []byte) error {
	return q.add(ctx, backliteTask{payload})
}

// EnqueueAll is one operation, which backlite puts into one transaction.
func (q *backliteQueue) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	tasks := make([]backlite.Task, len(payloads))
	for i, payload := range payloads {
		tasks[i] = backliteTask{payload}
	}
	return q.add(ctx, tasks...)
}

// Work is slow to drain by backlite's design: when its dispatcher finds all workers busy
// it sleeps for 100 ms, and no setting changes that.
func (q *backliteQueue) Work(ctx context.Context, workers int, handle func([]byte)) error {
	level := new(slog.LevelVar)
	level.Set(slog.LevelError)
	client, err := q.newClient(workers, level)
	if err != nil {
		return err
	}
	idle, err := q.newClient(1, slog.LevelError)
	if err != nil {
		return err
	}
	client.Register(backlite.NewQueue(func(_ context.Context, task backliteTask) error {
		handle(task.Payload)
		return nil
	}))

	// Ending the context of Start would abort what the workers write about the tasks
	// that they finished.
	client.Start(context.WithoutCancel(ctx))
	q.use(client)
	client.Notify() // of tasks that were added through the client before, behind the first look of this one
	<-ctx.Done()

	// A stopped client takes note of a thousand tasks and then may block the next.
	q.use(idle)
	stop, cancel := stopContext(ctx)
	defer cancel()
	client.Stop(stop) // false when it gave up on tasks that it had claimed but not started

	// A fetch that began before the stop may go on, and would complain about a database
	// that is closed by then.
	level.Set(slog.LevelError + 1)
	return nil
}

func (q *backliteQueue) Close() error {
	return q.db.Close()
}
