package jetstream_test

import (
	"testing"

	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/transport/transporttest"
	"github.com/gopawl/pawl/jetstream"
)

// Rule: each row of the table of nack and abandon, what is refused, and a drain.
func TestTable(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, transporttest.Engine{
		Name: "jetstream", Crashes: true, ShowsLeases: true,
		New: func(t *testing.T, o transporttest.Options) func() transporttest.Queue {
			folder := memdir.New(t)
			with := jetstream.Options{Lease: o.Lease, MaxCrashes: o.MaxCrashes, OnEvent: o.OnEvent, Collector: o.Collector}
			_, release := use(t, folder) // the server outlives each client
			t.Cleanup(release)
			return func() transporttest.Queue { return open(t, folder, with) }
		},
	})
}
