package postgres_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// urlOf returns the URL of a schema on the server of the tests.
func urlOf(scheme, schema string) string {
	values := url.Values{"host": {hostOf()}, "user": {"pawl"}, "schema": {schema}}
	return scheme + ":///postgres?" + values.Encode()
}

// Rule: a program that imports the package opens a queue by its URL, which may name the schema.
func TestEngine(t *testing.T) {
	schema := newSchema(t)
	for _, scheme := range []string{"postgres", "postgresql"} {
		q, err := engine.Open(t.Context(), urlOf(scheme, schema))
		require.NoError(t, err)
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
		require.NoError(t, q.Close())
	}
	require.Equal(t, 2, countOf(t, open(t, schema)))
}

// Rule: the schema in the options and the schema in a URL must not differ, and a bad schema in a
// URL is refused.
func TestSchemaOfURL(t *testing.T) {
	schema := newSchema(t)
	q, err := postgres.Open(t.Context(), urlOf("postgres", schema), &postgres.Options{Schema: schema})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	for _, opts := range []*postgres.Options{nil, {Schema: "other"}} {
		_, err := postgres.Open(t.Context(), urlOf("postgres", `a"b`), opts)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

// Rule: no error of an engine has the password of its URL, not even if the URL cannot be parsed.
func TestEngineKeepsThePassword(t *testing.T) {
	for _, where := range []string{
		"postgres://app:hunter2@localhost:1/db", "postgres://app:hunter2@localhost:x/db", "postgres://app:hunter2@%zz/db",
		"postgres://app:hunter2%zz@localhost/db", "postgres://app:hunter2@localhost/db?sslmode=none", "postgres://app:a hunter2@h/db",
		"postgres://h/db?password=hunter2&port=x", "postgres://app:hunter2/b@localhost/db", "postgres:///db?host=/nowhere&user=x&password=hunter2",
		"postgres://h/db?sslmode=bad&password=hunter2%zz", "postgres://[::1:hunter2@/db", "postgres://app:hun\nhunter2@localhost/db",
	} {
		q, err := engine.Open(t.Context(), where)
		require.Error(t, err, where)
		require.Nil(t, q)
		require.NotContains(t, err.Error(), "hunter2", where)
	}
}
