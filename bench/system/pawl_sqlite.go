package system

import (
	"context"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/sqlite"
)

// PawlSQLite is this library in a SQLite database, whose every commit is synced.
func PawlSQLite() System {
	return System{
		Name:       Pawl().Name + "-sqlite",
		Durability: Synced,
		Settings:   "default options",
		Version:    "this checkout (" + moderncVersion() + ")",
		Open: func(ctx context.Context, dir string, _ *Server) (Queue, error) {
			q, err := sqlite.Open(ctx, filepath.Join(dir, "jobs.sqlite"), &sqlite.Options{Logger: hclog.NewNullLogger()})
			if err != nil {
				return nil, err
			}
			return client{q}, nil
		},
	}
}
