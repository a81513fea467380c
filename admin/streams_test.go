package admin

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// endless emits events until its context ends, and then closes ended.
func endless(ended chan<- struct{}) func(context.Context) iter.Seq2[Event, error] {
	return func(ctx context.Context) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) {
			defer close(ended)
			for ctx.Err() == nil {
				if !yield(Event{Event: pawl.Event{Type: pawl.EventSucceeded, Job: &pawl.Envelope{Kind: "k"}}}, nil) {
					return
				}
			}
			yield(Event{}, ctx.Err())
		}
	}
}

// quiet emits the given events, and nothing more until its context ends.
func quiet(events ...Event) func(context.Context) iter.Seq2[Event, error] {
	return func(ctx context.Context) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			<-ctx.Done()
			yield(Event{}, ctx.Err())
		}
	}
}

// A client receives every event unchanged, including one with bytes that are not text, and one
// after an hour without events.
func TestEventsArriveAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().UTC().Round(0)
		job := &pawl.Envelope{ID: pawl.NewID(at), Kind: "k", Queue: "q\xff", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPermanent, At: at}}
		first := Event{Missed: 7, Event: pawl.Event{
			Type: pawl.EventDied, At: at, Job: job, Took: time.Second, TimedOut: true, Delay: time.Minute, Backoff: 3, Cause: "\xfe\xff",
		}}
		late := make(chan Event)
		a := &scripted{events: func(ctx context.Context) iter.Seq2[Event, error] {
			return func(yield func(Event, error) bool) {
				if yield(first, nil) && yield(<-late, nil) {
					<-ctx.Done()
					yield(Event{}, ctx.Err())
				}
			}
		}}
		c := newPiped(t, a, 4).client()
		go func() {
			<-time.After(time.Hour)
			late <- Event{Event: pawl.Event{Type: pawl.EventDeleted, At: at, Job: job}}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []Event
		var last error
		for e, err := range c.Events(ctx) {
			if err != nil {
				last = err
				break
			}
			if got = append(got, e); len(got) == 2 {
				cancel()
			}
		}
		require.Equal(t, context.Canceled, last)
		require.Len(t, got, 2)
		require.Equal(t, first.Missed, got[0].Missed)
		require.Equal(t, job.Queue, got[0].Job.Queue)
		got[0].Job, first.Job = nil, nil
		require.Equal(t, first, got[0])
		require.Equal(t, pawl.EventDeleted, got[1].Type)
	})
}

// A stream ends with the reason: the queue was closed, or the server is gone.
func TestEventsEndWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := &scripted{events: func(context.Context) iter.Seq2[Event, error] {
			return func(yield func(Event, error) bool) { yield(Event{}, pawl.ErrClosed) }
		}}
		for _, err := range newPiped(t, closed, 4).client().Events(t.Context()) {
			require.ErrorIs(t, err, pawl.ErrClosed)
		}

		p := newPiped(t, &scripted{events: quiet()}, 4)
		go func() {
			<-time.After(time.Minute)
			p.end()
		}()
		for _, err := range p.client().Events(t.Context()) {
			require.ErrorIs(t, err, ErrUnreachable)
			require.NotErrorIs(t, err, context.Canceled)
		}
	})
}

// sendRaw sends a handwritten request, and reads nothing of the answer.
func sendRaw(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	_, err := io.WriteString(conn, request+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
}

// A listener that reads nothing for ten seconds is dropped, and the queue's events are no longer
// collected for it.
func TestListenerThatStallsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		p := newPiped(t, &scripted{events: endless(ended)}, 4)
		conn := p.connect()
		defer conn.Close()
		began := time.Now()
		sendRaw(t, conn, "GET "+pathEvents)
		<-ended
		require.Equal(t, stall, time.Since(began))
	})
}

// At most eight listeners receive events; another is refused, and a listener that leaves makes
// room.
func TestListenersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Event{Event: pawl.Event{Type: pawl.EventDeleted, Job: &pawl.Envelope{Kind: "k"}}}
		c := newPiped(t, &scripted{events: quiet(one)}, 64).client()
		var stops []func()
		for range maxStreams {
			next, stop := iter.Pull2(c.Events(t.Context()))
			_, err, _ := next()
			require.NoError(t, err)
			stops = append(stops, stop)
		}
		for _, err := range c.Events(t.Context()) {
			require.ErrorIs(t, err, ErrBusy)
		}
		stops[0]()
		synctest.Wait()
		next, stop := iter.Pull2(c.Events(t.Context()))
		_, err, _ := next()
		require.NoError(t, err)
		for _, stop := range append(stops[1:], stop) {
			stop()
		}
	})
}

// A check reports its progress and its end, even after a panic, and two checks do not run at the
// same time.
func TestCheckReportsHowItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found := fmt.Errorf("%w: a row too many", pawl.ErrCorrupt)
		for _, test := range []struct {
			rule  string
			check func() error
			is    error
			text  string
		}{
			{"a sound queue", func() error { return nil }, nil, ""},
			{"a damaged queue", func() error { return found }, pawl.ErrCorrupt, "corrupt data: a row too many"},
			{"a panic", func() error { panic("row") }, nil, "panicked"},
		} {
			p := newPiped(t, &scripted{check: func(ctx context.Context) error {
				<-time.After(time.Hour) // heartbeats keep the stream alive
				return test.check()
			}}, 4)
			go func() {
				<-time.After(time.Minute)
				require.ErrorIs(t, p.client().Check(t.Context()), ErrBusy, test.rule)
			}()
			err := p.client().Check(t.Context())
			if test.text == "" {
				require.NoError(t, err, test.rule)
				continue
			}
			require.ErrorContains(t, err, test.text, test.rule)
			if test.is != nil {
				require.ErrorIs(t, err, test.is, test.rule)
			}
		}
	})
}

// A check ends if its client goes away.
func TestCheckEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		c := newPiped(t, &scripted{check: func(ctx context.Context) error {
			defer close(ended)
			<-ctx.Done()
			return ctx.Err()
		}}, 4).client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.Check(ctx), context.DeadlineExceeded)
		<-ended
	})
}

// The progress of a check and of a backup reaches the caller's function, never decreases, and
// reaches its end.
func TestProgressArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openLive(t)
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
		var reported [][2]int64
		ctx := driver.WithProgress(t.Context(), func(done, total int64) { reported = append(reported, [2]int64{done, total}) })
		require.NoError(t, newPiped(t, Of(q), 4).client().Check(ctx))
		requireProgress(t, reported)

		reported = nil
		require.NoError(t, newPiped(t, Of(q), 4).client().Backup(ctx, io.Discard))
		requireProgress(t, reported)
	})
}

func requireProgress(t *testing.T, reported [][2]int64) {
	t.Helper()
	require.NotEmpty(t, reported)
	require.Zero(t, reported[0][0])
	for i := range reported[1:] {
		require.GreaterOrEqual(t, reported[i+1][0], reported[i][0])
		require.Equal(t, reported[0][1], reported[i][1])
	}
	last := reported[len(reported)-1]
	require.Positive(t, last[1])
	require.Equal(t, last[1], last[0])
}
