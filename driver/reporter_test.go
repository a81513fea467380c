package driver_test

import (
	"bytes"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: without receivers, only events are wanted that are logged or that end a wait.
func TestReporterWants(t *testing.T) {
	var r driver.Reporter
	wanted := map[pawl.EventType]bool{
		pawl.EventDied: true, pawl.EventReaped: true, pawl.EventRecovered: true, pawl.EventSkipped: true,
		pawl.EventSucceeded: false, pawl.EventFetched: false, pawl.EventEnqueued: false,
	}
	for event, want := range wanted {
		require.Equal(t, want, r.Wants(event), event)
	}
	stop := r.Listen(func(pawl.Event) {})
	for event := range wanted {
		require.True(t, r.Wants(event), event)
	}
	stop()
	require.False(t, r.Listened())
}

// Rule: a receiver that panics keeps no other receiver from the event, and the log has each panic.
func TestReporterGuardsEachReceiver(t *testing.T) {
	var log bytes.Buffer
	received := 0
	r := driver.Reporter{
		Logger:  hclog.New(&hclog.LoggerOptions{Output: &log}),
		OnEvent: func(pawl.Event) { panic("first") },
	}
	defer r.Listen(func(pawl.Event) { panic("second") })()
	defer r.Listen(func(pawl.Event) { received++ })()
	r.Emit(pawl.Event{Type: pawl.EventSucceeded, Job: new(pawl.Envelope)})
	require.Equal(t, 1, received)
	require.Contains(t, log.String(), "panic=first")
	require.Contains(t, log.String(), "panic=second")
}
