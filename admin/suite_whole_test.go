package admin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/withid"
)

// Operations on the whole queue: restore, check, backup, events, the end.
func TestSuiteWhole(t *testing.T) { runSuite(t, wholeCases) }

// tooFull is a writer whose disk is full after some bytes.
type tooFull struct{ room int }

var errTooFull = errors.New("no room")

func (w *tooFull) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, errTooFull
	}
	return len(p), nil
}

var wholeCases = []suiteCase{
	{"what is listed and restored elsewhere is the same there", nil, nil, func(t *testing.T, s *suiteTest) {
		from := newFixture(t, everyState)
		effects, next, err := Of(from.q).Effects(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, effects, 1)
		s.pass(from.now().Sub(s.now()))

		require.NoError(t, s.Restore(t.Context(), from.want, effects))
		got := envelopes(t, readPages(t, s, Query{Detail: Whole}))
		require.Len(t, got, len(from.want))
		for i, want := range from.want {
			want, own := *want, *got[i]
			own.Seq = want.Seq
			if want.State == pawl.Leased { // its process is elsewhere
				want.State, want.LeasedSince = pawl.Ready, time.Time{}
			}
			same(t, []*pawl.Envelope{&want}, []*pawl.Envelope{&own})
		}
		back, _, err := s.Effects(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, back, 1)
		require.True(t, back[0].Until.Equal(effects[0].Until))
		require.Equal(t, []string{"completed", "done"}, []string{back[0].Kind, back[0].Key})
		require.ErrorIs(t, s.Restore(t.Context(), from.want[:1], nil), pawl.ErrConflict)
	}},
	{"effects come in pages that have an end", nil, nil, func(t *testing.T, s *suiteTest) {
		var effects []driver.Effect
		for i := range 2500 {
			effects = append(effects, driver.Effect{Kind: "k\xff", Key: string([]byte{'k', byte(i >> 8), byte(i)}), Until: noon.Add(time.Hour)})
		}
		require.NoError(t, s.Restore(t.Context(), nil, effects))
		seen := make(map[string]bool)
		for after := ""; ; {
			page, next, err := s.Effects(t.Context(), after)
			require.NoError(t, err)
			for _, e := range page {
				require.Equal(t, "k\xff", e.Kind)
				require.False(t, seen[e.Key])
				seen[e.Key] = true
			}
			if after = next; after == "" {
				break
			}
		}
		require.Len(t, seen, 2500)
	}},
	{"a restore that is refused stores nothing", everyState, nil, func(t *testing.T, s *suiteTest) {
		good := &pawl.Envelope{ID: pawl.ID{5}, Kind: "good", State: pawl.Ready}
		for want, bad := range map[error]*pawl.Envelope{
			pawl.ErrInvalid:  {ID: pawl.ID{6}, Kind: "", State: pawl.Ready},
			pawl.ErrConflict: {ID: s.ids["dead"], Kind: "x", State: pawl.Ready},
		} {
			require.ErrorIs(t, s.Restore(t.Context(), []*pawl.Envelope{good, bad}, nil), want)
		}
		_, err := s.Job(t.Context(), good.ID)
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
	{"a sound queue passes its check, which tells how far it is", everyState, nil, func(t *testing.T, s *suiteTest) {
		done, total := int64(-1), int64(0)
		ctx := driver.WithProgress(t.Context(), func(d, n int64) {
			require.GreaterOrEqual(t, d, done)
			done, total = d, n
		})
		require.NoError(t, s.Check(ctx))
		require.Positive(t, done)
		require.Equal(t, total, done)
	}},
	{"a damaged queue fails its check", everyState, spoil("dead"), func(t *testing.T, s *suiteTest) {
		require.ErrorIs(t, s.Check(t.Context()), pawl.ErrCorrupt)
	}},
	{"a damaged entry of a run fails the check", someRuns, spoilRow("steps", "order:1"), func(t *testing.T, s *suiteTest) {
		require.ErrorContains(t, s.Check(t.Context()), "table steps of pawl.workflow")
	}},
	{"a damaged schedule fails the check", damagedSchedule, nil, func(t *testing.T, s *suiteTest) {
		require.ErrorContains(t, s.Check(t.Context()), "table schedules of pawl.schedule")
	}},
	{"a backup is a queue like any other, with the same jobs", everyState, nil, func(t *testing.T, s *suiteTest) {
		path := filepath.Join(memdir.New(t), "copy.db")
		var copied bytes.Buffer
		require.NoError(t, s.Backup(t.Context(), &copied))
		require.NoError(t, os.WriteFile(path, copied.Bytes(), 0o600))
		r, err := bolt.OpenReader(path)
		require.NoError(t, err)
		defer r.Close()
		require.NoError(t, r.Check(t.Context()))
		same(t, s.want, listed(t, r, pawl.Filter{}))
	}},
	{"a backup that cannot be written is an error, and the next one comes through", everyState, nil, func(t *testing.T, s *suiteTest) {
		require.ErrorIs(t, s.Backup(t.Context(), &tooFull{5000}), errTooFull)
		err := s.Backup(t.Context(), new(bytes.Buffer))
		for errors.Is(err, ErrBusy) { // the app has not noticed yet that the first client is gone
			err = s.Backup(t.Context(), new(bytes.Buffer))
		}
		require.NoError(t, err)
	}},
	{"events tell what happens to each job, and end with their context", everyState, nil, func(t *testing.T, s *suiteTest) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := hear(ctx, s)
		if !s.live {
			require.ErrorIs(t, <-events.ended, ErrNotLive)
			return
		}
		s.until(t, events)
		e := &pawl.Envelope{Kind: "heard \xff", Queue: "email", Delay: time.Hour}
		require.NoError(t, withid.Enqueue(t.Context(), s, e))
		_, err := s.Do(t.Context(), Action{Verb: RunNow}, e.ID)
		require.NoError(t, err)
		_, err = s.Do(t.Context(), Action{Verb: Cancel}, e.ID)
		require.NoError(t, err)
		for _, want := range []pawl.EventType{pawl.EventEnqueued, pawl.EventRunNow, pawl.EventDied} {
			got := <-events.received
			for got.Job.Kind == "prelude" {
				got = <-events.received
			}
			require.Equal(t, want, got.Type)
			require.Equal(t, e.ID, got.Job.ID)
			require.Equal(t, e.Kind, got.Job.Kind)
			require.Equal(t, "email", got.Job.Queue)
			require.True(t, got.At.Equal(s.now()))
			require.Zero(t, got.Missed)
			if want == pawl.EventDied {
				require.Equal(t, pawl.ReasonCancelled, got.Job.Death.Reason)
			}
		}
		cancel()
		require.ErrorIs(t, <-events.ended, context.Canceled)
	}},
	{"events end when the queue is closed", nil, nil, func(t *testing.T, s *suiteTest) {
		if !s.live {
			t.Skip("nothing happens in a file that no process has open")
		}
		events := hear(t.Context(), s)
		s.until(t, events)
		require.NoError(t, s.q.Close())
		require.ErrorIs(t, <-events.ended, pawl.ErrClosed)
	}},
	{"who stops listening can listen again", nil, nil, func(t *testing.T, s *suiteTest) {
		if !s.live {
			t.Skip("nothing happens in a file that no process has open")
		}
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range s.Events(ctx) {
					return // at the first event
				}
			}()
			for waiting := true; waiting; {
				require.NoError(t, withid.Enqueue(t.Context(), s, &pawl.Envelope{Kind: "prelude"}))
				select {
				case <-done:
					waiting = false
				default:
				}
			}
			cancel()
		}
	}},
}

// hearing is what a listener has received.
type hearing struct {
	received chan Event
	ended    chan error
}

func hear(ctx context.Context, a Admin) hearing {
	h := hearing{make(chan Event, 100_000), make(chan error, 1)}
	go func() {
		for e, err := range a.Events(ctx) {
			if err != nil {
				h.ended <- err
				return
			}
			h.received <- e
		}
		h.ended <- nil
	}()
	return h
}

// until enqueues jobs until one is received: from then on nothing is missed.
func (s *suiteTest) until(t *testing.T, h hearing) {
	t.Helper()
	for {
		require.NoError(t, withid.Enqueue(t.Context(), s, &pawl.Envelope{Kind: "prelude"}))
		select {
		case <-h.received:
			return
		case err := <-h.ended:
			require.NoError(t, err)
		default:
		}
	}
}
