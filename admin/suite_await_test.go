package admin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// An operator waits for jobs.
func TestSuiteAwaits(t *testing.T) { runSuite(t, awaitCases) }

var awaitCases = []suiteCase{
	{"a job that has ended is returned at once, and an unknown one is an error", everyState, nil, func(t *testing.T, s *suiteTest) {
		ended := 0
		for _, want := range s.want {
			if want.State != pawl.Dead && want.State != pawl.Completed {
				continue
			}
			got, err := s.Await(t.Context(), want.ID)
			require.NoError(t, err)
			same(t, []*pawl.Envelope{want}, []*pawl.Envelope{got})
			ended++
		}
		require.GreaterOrEqual(t, ended, 2)
		_, err := s.Await(t.Context(), pawl.NewID(time.Now()))
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
	{"a job that goes on is waited for, unless no app runs it", nil, nil, func(t *testing.T, s *suiteTest) {
		done, err := s.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Retain: time.Hour}, &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"})
		require.NoError(t, err)
		if !s.live {
			_, err := s.Await(t.Context(), done[0].ID)
			require.ErrorIs(t, err, ErrNotLive)
			return
		}
		short, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Await(short, done[0].ID)
		require.ErrorIs(t, err, context.Canceled)
		type end struct {
			e   *pawl.Envelope
			err error
		}
		ends := make([]chan end, len(done))
		for i, d := range done {
			ends[i] = make(chan end, 1)
			go func() {
				e, err := s.Await(t.Context(), d.ID)
				ends[i] <- end{e, err}
			}()
		}
		leases, err := s.q.Fetch(t.Context(), pawl.Request{Max: 3})
		require.NoError(t, err)
		require.Len(t, leases, 3)
		ack := leases[0].Ack()
		ack.Result = []byte{1}
		require.NoError(t, s.q.Settle(t.Context(), ack, leases[2].Abandon(pawl.ReasonPermanent, nil)))
		got := <-ends[0]
		require.NoError(t, got.err)
		require.Equal(t, pawl.Completed, got.e.State)
		require.Equal(t, []byte{1}, got.e.Result)
		got = <-ends[2]
		require.NoError(t, got.err)
		require.Equal(t, pawl.ReasonPermanent, got.e.Death.Reason)
		require.NoError(t, s.q.Settle(t.Context(), leases[1].Abandon(pawl.ReasonExhausted, nil)))
		got = <-ends[1]
		require.NoError(t, got.err)
		require.Equal(t, pawl.ReasonExhausted, got.e.Death.Reason)
	}},
}
