package bolt

import (
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// counting is a collector that may panic.
type counting struct {
	metrics.Collector
	names  []string
	panics bool
}

func (c *counting) Increment(name string, _ metrics.Labels) {
	c.names = append(c.names, name)
	if c.panics {
		panic("boom")
	}
}

func (c *counting) Observe(string, metrics.Labels, float64) {}

// A panic of the collector does not keep OnEvent from its events, nor the other way round, and
// neither harms the queue.
func TestListenerThatPanics(t *testing.T) {
	for _, test := range []struct {
		rule                string
		collector, listener bool
	}{{"the collector", true, false}, {"OnEvent", false, true}, {"both", true, true}} {
		t.Run(test.rule, func(t *testing.T) {
			c := &counting{panics: test.collector}
			var events eventLog
			q := openTest(t, &Options{Logger: hclog.NewNullLogger(), Collector: c, OnEvent: func(e pawl.Event) {
				events.event(e)
				if test.listener {
					panic("boom")
				}
			}})
			add(t, q, nil)
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			require.NoError(t, q.Close())
			require.Equal(t, []string{"enqueued", "fetched", "succeeded"}, events.take())
			require.Equal(t, []string{metrics.JobsFetched, metrics.JobsSucceeded}, c.names)
		})
	}
}
