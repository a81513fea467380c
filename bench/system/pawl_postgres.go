package system

import (
	"context"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl/postgres"
)

// PawlPostgres is this library on PostgreSQL. It has the name of [Pawl], which takes no part in
// a comparison with it.
func PawlPostgres() System {
	return System{
		Name:       Pawl().Name,
		Durability: Synced,
		Settings:   postgresSettings + "; default options",
		Version:    "this checkout",
		Service:    postgresService,
		Start:      startPostgres,
		Open:       openPawlPostgres,
		Join:       joinPawlPostgres,
	}
}

func openPawlPostgres(ctx context.Context, dir string, server *Server) (Queue, error) {
	pool, err := pgxpool.New(ctx, postgresConfig(server))
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := startOver(ctx, pool, "DROP SCHEMA IF EXISTS pawl CASCADE"); err != nil {
		return nil, err
	}
	return JoinPawlPostgres(ctx, server, "")
}

func joinPawlPostgres(ctx context.Context, _ string, server *Server) (Queue, error) {
	return JoinPawlPostgres(ctx, server, "")
}

// JoinPawlPostgres opens the queue in a schema, with the jobs that it has. An empty name is the default.
func JoinPawlPostgres(ctx context.Context, server *Server, schema string) (Queue, error) {
	q, err := postgres.Open(ctx, postgresConfig(server), &postgres.Options{Schema: schema, Logger: hclog.NewNullLogger()})
	if err != nil {
		return nil, err
	}
	return client{q}, nil
}
