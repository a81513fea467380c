package workflows

import (
	"context"
	"errors"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/bench/system"
	"github.com/gopawl/pawl/postgres"
)

// onServer are engines on a server of PostgreSQL. Each trial has a server of its own. They run when
// their names are asked for, and stand in no report.
func onServer() []engine {
	settings := "a server of PostgreSQL for each trial, fsync and synchronous_commit on"
	return []engine{
		{
			name: "pawl-postgres", durability: synced, modules: []string{"github.com/gopawl/pawl/postgres", "github.com/jackc/pgx/v5"},
			settings: settings + ", default options, a slot of the worker for each caller, Start and Result",
			open: served(func(ctx context.Context, url string, callers int) (store, error) {
				logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Error})
				q, err := postgres.Open(ctx, url, &postgres.Options{Logger: logger})
				if err != nil {
					return nil, err
				}
				return workOn(ctx, q, callers, logger)
			}),
		},
		{
			name: "dbos-postgres", durability: synced, modules: []string{"github.com/dbos-inc/dbos-transact-golang", "github.com/jackc/pgx/v5"},
			settings: settings + ", RunWorkflow and GetResult",
			open: served(func(ctx context.Context, url string, _ int) (store, error) {
				return openDBOS(ctx, dbos.Config{DatabaseURL: url}, nil)
			}),
		},
	}
}

// served opens a store on a server that ends with it.
func served(open func(ctx context.Context, url string, callers int) (store, error)) func(ctx context.Context, dir string, callers int) (store, error) {
	return func(ctx context.Context, dir string, callers int) (store, error) {
		server, url, err := system.StartPostgres(ctx, dir)
		if err != nil {
			return nil, err
		}
		s, err := open(ctx, url, callers)
		if err != nil {
			return nil, errors.Join(err, server.Stop())
		}
		return &servedStore{s, server}, nil
	}
}

type servedStore struct {
	store
	server *system.Server
}

func (s *servedStore) close() error { return errors.Join(s.store.close(), s.server.Stop()) }
