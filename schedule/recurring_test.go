package schedule_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/recurring"
)

// TestRecurring proves the promises of schedules over package bolt.
func TestRecurring(t *testing.T) {
	recurring.Run(t, recurring.Store{Seeds: 8, Steps: 20, Open: func(t testing.TB, path string, now func() time.Time) recurring.Queue {
		q, err := bolt.Open(path, &bolt.Options{Now: now, Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		return q
	}})
}
