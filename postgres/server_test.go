package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Rule: the tests have their own server, in a version that package postgres supports, and a schema
// that no other test uses.
func TestServer(t *testing.T) {
	schema, other := newSchema(t), newSchema(t)
	require.NotEqual(t, schema, other)
	execute(t, "CREATE SCHEMA "+schema)
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var version int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int").Scan(&version))
	require.GreaterOrEqual(t, version, 130000)
}
