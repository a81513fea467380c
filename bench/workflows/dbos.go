package workflows

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

// dbosFull is DBOS with the promise that pawl makes.
const dbosFull = "dbos-full"

// dbosConnections is the pool that DBOS makes for SQLite.
const dbosConnections = 8

// dbosEngines are DBOS as its documentation sets it up, and with every commit synced.
//
// A database URL that asks for synchronous(FULL) does not bring that about. DBOS opens its
// pool with it, but then sets synchronous=NORMAL on the first connection, which is the one
// that a lone caller uses. So the handle is made here, with a pool of the same size.
func dbosEngines() []engine {
	modules := []string{"github.com/dbos-inc/dbos-transact-golang", sqliteModule}
	return []engine{
		{
			name: dbosFull, durability: synced, modules: modules,
			settings: fullSync.settings() + " on every connection (SQLiteSystemDB with the pool that DBOS makes), RunWorkflow and GetResult",
			open: func(ctx context.Context, dir string, _ int) (store, error) {
				db, err := openSQLite(dir, fullSync, dbosConnections)
				if err != nil {
					return nil, err
				}
				return openDBOS(ctx, dbos.Config{SQLiteSystemDB: db}, db)
			},
		},
		{
			name: "dbos", durability: normalSync.durability(), modules: modules,
			settings: normalSync.settings() + " (the default), RunWorkflow and GetResult",
			open: func(ctx context.Context, dir string, _ int) (store, error) {
				return openDBOS(ctx, dbos.Config{DatabaseURL: "sqlite:" + databaseFile(dir)}, nil)
			},
		},
	}
}

type dbosStore struct {
	ctx      dbos.Context
	db       *sql.DB // nil where DBOS has its own
	pong     func(dbos.Context, int) (int, error)
	answered chan int
}

func openDBOS(ctx context.Context, config dbos.Config, db *sql.DB) (store, error) {
	config.AppName = "bench"
	config.Logger = errorsOnly()
	answered := make(chan int, 1)
	pong := dbosPong(answered)
	d, err := dbos.NewContext(ctx, config)
	if err == nil {
		dbos.RegisterWorkflow(d, dbosWorkflow)
		dbos.RegisterWorkflow(d, pong)
		err = dbos.Launch(d)
	}
	if err != nil {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
		return nil, err
	}
	return &dbosStore{d, db, pong, answered}, nil
}

func dbosWorkflow(ctx dbos.Context, n int) (int, error) {
	for range steps {
		var err error
		n, err = dbos.RunAsStep(ctx, func(context.Context) (int, error) { return n + 1, nil }, dbos.WithStepName("add"))
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (s *dbosStore) run(_ context.Context, id string, input int) (int, error) {
	handle, err := dbos.RunWorkflow(s.ctx, dbosWorkflow, input, dbos.WithWorkflowID(id))
	if err != nil {
		return 0, err
	}
	return handle.GetResult()
}

func (s *dbosStore) close() error {
	err := dbos.Shutdown(s.ctx, 10*time.Second)
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// errorsOnly is the log of the engines: what goes wrong has to be seen, and a line for
// each workflow would be part of what is measured.
func errorsOnly() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
