package connect

import (
	"bytes"
	"time"

	"github.com/gopawl/pawl"
)

// withIDs returns copies of jobs, each with an ID, by which it is found again.
func withIDs(jobs []*pawl.Envelope) []*pawl.Envelope {
	sent := make([]*pawl.Envelope, len(jobs))
	now := time.Now()
	for i, e := range jobs {
		own := *e
		if own.ID.IsZero() {
			own.ID = pawl.NewID(now)
		}
		sent[i] = &own
	}
	return sent
}

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
