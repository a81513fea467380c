package postgres_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/recurring"
	"github.com/gopawl/pawl/postgres"
)

// TestRecurring proves the promises of schedules over PostgreSQL.
func TestRecurring(t *testing.T) {
	t.Parallel()
	newSchema(t) // or skip
	free := newFreeSchemas(t, "")
	recurring.Run(t, recurring.Store{Seeds: 1, Steps: 6, Shared: true, Open: func(t testing.TB, path string, now func() time.Time) recurring.Queue {
		q, err := postgres.Open(t.Context(), free.url, &postgres.Options{
			Schema: schemaOf(t, path, free), Poll: postgres.NoPoll, Timeout: time.Second, Now: now, Logger: hclog.NewNullLogger(),
		})
		require.NoError(t, err)
		return q
	}})
}
