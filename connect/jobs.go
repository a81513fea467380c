package connect

import (
	"bytes"
	"time"

	"github.com/gopawl/pawl"
)

// isOf reports whether what a queue has under the ID of a job is that job.
func isOf(stored, sent *pawl.Envelope) bool {
	return stored.Kind == sent.Kind && (stored.State == pawl.Completed || bytes.Equal(stored.Payload, sent.Payload))
}

// withoutRecord returns the end of a job whose record went between two looks: dead jobs stay.
func withoutRecord(last *pawl.Envelope) *pawl.Envelope {
	e := *last
	e.State, e.Payload, e.Completed = pawl.Completed, nil, time.Now()
	return &e
}
