package sqlite_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/recurring"
	"github.com/gopawl/pawl/sqlite"
)

// TestRecurring proves the promises of schedules over SQLite.
func TestRecurring(t *testing.T) {
	recurring.Run(t, recurring.Store{Seeds: 1, Steps: 20, Open: func(t testing.TB, path string, now func() time.Time) recurring.Queue {
		q, err := sqlite.Open(t.Context(), path, &sqlite.Options{Now: now, Poll: sqlite.NoPoll, Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		return q
	}})
}
