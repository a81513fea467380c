package memory_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/recurring"
	"github.com/gopawl/pawl/memory"
)

// lasting is a queue that can be opened again: it is closed with its test.
type lasting struct{ *memory.Queue }

func (lasting) Close() error { return nil }

// TestRecurring proves the promises of schedules over a queue in memory.
func TestRecurring(t *testing.T) {
	open := make(map[string]*memory.Queue)
	recurring.Run(t, recurring.Store{Seeds: 1, Steps: 10, Lasts: true, Open: func(t testing.TB, path string, now func() time.Time) recurring.Queue {
		if open[path] == nil {
			q := memory.New(&memory.Options{Now: now, Logger: hclog.NewNullLogger()})
			open[path] = q
			t.Cleanup(func() { require.NoError(t, q.Close()) })
		}
		return lasting{open[path]}
	}})
}
