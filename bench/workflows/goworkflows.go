package workflows

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

// goWorkflows are go-workflows with every commit synced, which is what its own handle of
// SQLite does, and with less.
func goWorkflows() []engine {
	var all []engine
	for _, one := range []struct {
		name    string
		journal journal
	}{{"go-workflows", fullSync}, {"go-workflows-normal", normalSync}} {
		settings := one.journal.settings()
		if one.journal == fullSync {
			settings += " (the default)"
		}
		settings += ", 1 connection, monoprocess backend, default worker, GetWorkflowResult"
		all = append(all, engine{
			name: one.name, durability: one.journal.durability(), settings: settings,
			modules: []string{"github.com/cschleiden/go-workflows", sqliteModule},
			open: func(ctx context.Context, dir string, _ int) (store, error) {
				return openGoWorkflows(ctx, dir, one.journal)
			},
		})
	}
	return all
}

type goWorkflowsStore struct {
	db      *sql.DB
	backend backend.Backend
	client  *client.Client
	worker  *worker.Worker
	stop    context.CancelFunc
}

func openGoWorkflows(ctx context.Context, dir string, j journal) (store, error) {
	db, err := openSQLite(dir, j, 1)
	if err != nil {
		return nil, err
	}
	// The wrapper wakes the worker of the same process; without it each step waits for a
	// poll every 200 ms.
	b := monoprocess.NewMonoprocessBackend(sqlite.NewSqliteBackendWithDB(db,
		sqlite.WithApplyMigrations(true), sqlite.WithBackendOptions(backend.WithLogger(errorsOnly()))))
	s := &goWorkflowsStore{db: db, backend: b, client: client.New(b), worker: worker.New(b, nil)}
	work, stop := context.WithCancel(ctx)
	s.stop = stop
	err = errors.Join(s.worker.RegisterWorkflow(goWorkflow), s.worker.RegisterActivity(goActivity))
	if err == nil {
		err = s.worker.Start(work)
	}
	if err != nil {
		stop()
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func goWorkflow(ctx workflow.Context, n int) (int, error) {
	for range steps {
		var err error
		n, err = workflow.ExecuteActivity[int](ctx, workflow.DefaultActivityOptions, goActivity, n).Get(ctx)
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

func goActivity(_ context.Context, n int) (int, error) { return n + 1, nil }

func (s *goWorkflowsStore) run(ctx context.Context, id string, input int) (int, error) {
	instance, err := s.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: id}, goWorkflow, input)
	if err != nil {
		return 0, err
	}
	return client.GetWorkflowResult[int](ctx, s.client, instance, time.Minute)
}

func (s *goWorkflowsStore) close() error {
	s.stop()
	return errors.Join(s.worker.WaitForCompletion(), s.backend.Close(), s.db.Close())
}
