package postgres

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl"
)

// format is the format of the schema that this build reads and writes.
const format = 1

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock for creating or upgrading a schema.
const migrationLock = 0x7061776c // "pawl"

// migrate creates the tables of a schema that has none, unless existing is set, and refuses another
// format.
func migrate(ctx context.Context, pool *pgxpool.Pool, schema string, existing bool) error {
	switch found, exists, err := formatOf(ctx, pool, schema); {
	case err != nil:
		return err
	case exists && found > format:
		return fmt.Errorf("schema %s: %w: it has format %d, this build reads %d", schema, pawl.ErrNewerFormat, found, format)
	case exists && found < format:
		return fmt.Errorf("schema %s: %w: it has format %d, this build writes %d", schema, ErrOlderFormat, found, format)
	case exists:
		return nil
	case existing:
		return fmt.Errorf("schema %s: %w", schema, ErrNotQueue)
	}
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
			return err
		}
		if _, exists, err := formatOf(ctx, tx, schema); err != nil || exists {
			return err // another process was first
		}
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", format))
		if err != nil {
			return err
		}
		if err := createSchema(ctx, tx, schema); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqlIn(schema, string(text)))
		return err
	})
}

// createSchema creates the schema itself if it does not exist. The role needs a right on the
// database for that.
func createSchema(ctx context.Context, tx pgx.Tx, schema string) error {
	var exists bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&exists)
	if err == nil && !exists {
		_, err = tx.Exec(ctx, "CREATE SCHEMA "+quoted(schema))
	}
	return err
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// formatOf returns the format of a schema, and whether it has the tables of a queue.
func formatOf(ctx context.Context, q querier, schema string) (found int, exists bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'meta')`, schema).Scan(&exists)
	if err != nil || !exists {
		return 0, false, err
	}
	err = q.QueryRow(ctx, sqlIn(schema, sqlFormat)).Scan(&found)
	return found, true, err
}

// sqlIn returns a statement for a schema.
func sqlIn(schema, sql string) string { return strings.ReplaceAll(sql, "pawl.", quoted(schema)+".") }

// quoted returns a name quoted for SQL, since it may be a word of SQL.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
