package connect

import (
	"bytes"
	"time"

	"github.com/gopawl/pawl"
)

// isOf reports whether the job that a queue has under an ID is the job that was sent.
func isOf(stored, sent *pawl.Envelope) bool {
	return stored.Kind == sent.Kind && (stored.State == pawl.Completed || bytes.Equal(stored.Payload, sent.Payload))
}

// withoutRecord returns the end of a job whose record disappeared between two reads. The job
// succeeded, because dead jobs stay.
func withoutRecord(last *pawl.Envelope) *pawl.Envelope {
	e := *last
	e.State, e.Payload, e.Completed = pawl.Completed, nil, time.Now()
	return &e
}
