package transport_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// Rule: a job that was refused is neither stored nor reported. After an unknown outcome the caller gets the ID, and no event
// says that the job is there.
func TestEnqueue(t *testing.T) {
	var events []pawl.Event
	var stored []*pawl.Envelope
	var failure error
	q := &transport.Leases[string]{MaxBody: 4 << 10}
	q.OnEvent = func(e pawl.Event) { events = append(events, e) }
	s := transport.Storing{
		Name: "engine", MaxPayload: 1 << 20, TooLarge: "use another engine",
		Fits: func(e *pawl.Envelope) error {
			if e.Kind == "long" {
				return pawl.ErrInvalid
			}
			return nil
		},
		Store: func(_ context.Context, e *pawl.Envelope, body []byte, _ time.Time) (uint64, error) {
			own := *e
			stored = append(stored, &own)
			return 7, failure
		},
	}
	enqueue := func(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) { return q.Enqueue(t.Context(), s, jobs...) }
	for want, jobs := range map[error][]*pawl.Envelope{
		pawl.ErrUnsupported:     {{Kind: "k", UniqueKey: "u"}},
		pawl.ErrBatchTooLarge:   {{Kind: "k"}, {Kind: "k"}},
		pawl.ErrInvalid:         {{Kind: "long"}},
		pawl.ErrPayloadTooLarge: {{Kind: "k", Payload: make([]byte, 4<<10)}},
	} {
		done, err := enqueue(jobs...)
		require.ErrorIs(t, err, want)
		require.Empty(t, done)
	}
	require.Empty(t, stored)

	done, err := enqueue(&pawl.Envelope{Kind: "k", Seq: 9, Payload: []byte("x")})
	require.NoError(t, err)
	require.Equal(t, pawl.Ready, stored[0].State)
	require.Zero(t, stored[0].Seq)
	require.Equal(t, stored[0].ID, done[0].ID)
	_, err = enqueue(&pawl.Envelope{Kind: "k", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, pawl.Delayed, stored[1].State)
	require.Len(t, events, 2)
	require.Equal(t, uint64(7), events[0].Job.Seq)
	require.Nil(t, events[0].Job.Payload)

	failure = errors.New("refused")
	done, err = enqueue(&pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, failure)
	require.Empty(t, done)
	failure = fmt.Errorf("%w: the connection broke", pawl.ErrUnknownOutcome)
	done, err = enqueue(&pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.Equal(t, stored[3].ID, done[0].ID)
	require.Len(t, events, 2)

	q.Gate.Close()
	_, err = enqueue(&pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrClosed)
}
