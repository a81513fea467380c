package dlq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/metrics"
)

var errDown = errors.New("the sink is down")

// Rule: a sink gets each complete dead job, one after the other in the order of their death; stored
// jobs are removed.
func TestForwardToASink(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		first := failDead(t, q, &pawl.Envelope{Kind: "a", Queue: "mail", Payload: []byte("p")}, pawl.ReasonPermanent, "one", "two")
		second, other := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "b")
		want := get(t, q, first)

		var got []*pawl.Envelope
		sink := dlq.SinkFunc(func(_ context.Context, dead *pawl.Envelope) error {
			got = append(got, dead)
			return nil
		})
		n, err := dlq.Forward(t.Context(), q, sink, nil, pawl.Filter{Kind: "a"})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Len(t, got, 2)
		require.Equal(t, want, got[0])
		require.Len(t, got[0].History, 2)
		require.Equal(t, second, got[1].ID)
		require.Equal(t, []pawl.ID{other}, list(t, q, pawl.Filter{}))
	})
}

// Rule: a job that could not be stored stays, is counted and is logged as critical; the others
// continue.
func TestForwardThatFails(t *testing.T) {
	q := inMemory(t)
	first := failDead(t, q, &pawl.Envelope{Kind: "a", Queue: "mail"}, pawl.ReasonExhausted, "one", "two")
	second, third := makeDead(t, q, "mail", "a"), makeDead(t, q, "slow", "b")
	var log bytes.Buffer
	var tally metrics.Tally
	sink := dlq.SinkFunc(func(_ context.Context, dead *pawl.Envelope) error {
		if dead.ID == second {
			return nil
		}
		*dead = pawl.Envelope{} // the sink may modify it
		return errDown
	})
	n, err := dlq.Forward(t.Context(), q, sink, &dlq.ForwardOptions{
		Collector: &tally,
		Logger:    hclog.New(&hclog.LoggerOptions{Output: &log, JSONFormat: true}),
	}, pawl.Filter{})
	require.ErrorIs(t, err, errDown)
	require.ErrorContains(t, err, first.String())
	require.ErrorContains(t, err, "1 more")
	require.Equal(t, 1, n)
	require.Equal(t, []pawl.ID{first, third}, list(t, q, pawl.Filter{}))
	require.Len(t, get(t, q, first).History, 2, "it is as it was")
	require.Equal(t, map[metrics.Figure]int64{
		{Name: "jobs_dlq_failed", Labels: metrics.Labels{Queue: "mail", Kind: "a"}}: 1,
		{Name: "jobs_dlq_failed", Labels: metrics.Labels{Queue: "slow", Kind: "b"}}: 1,
	}, tally.Snapshot().Counts)

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 2)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	for key, want := range map[string]any{
		"@level": "error", "severity": "critical", "id": first.String(), "kind": "a", "queue": "mail",
		"attempts": 2.0, "reason": "exhausted", "error": errDown.Error(),
	} {
		require.Equal(t, want, line[key], key)
	}
}

// Rule: a job that is stored but not removed is in both places, never in none; the next Forward
// stores it again and removes it.
func TestForwardThatDoesNotRemove(t *testing.T) {
	q := inMemory(t)
	id := makeDead(t, q, "mail", "a")
	stored := 0
	sink := dlq.SinkFunc(func(context.Context, *pawl.Envelope) error {
		stored++
		return nil
	})
	var tally metrics.Tally
	opts := &dlq.ForwardOptions{Collector: &tally, Logger: hclog.NewNullLogger()}
	crash := &shelf{queue: q, delete: func(pawl.ID) error { return pawl.ErrClosed }}
	n, err := dlq.Forward(t.Context(), crash, sink, opts, pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrClosed)
	require.Zero(t, n)
	require.Equal(t, []pawl.ID{id}, list(t, q, pawl.Filter{}))
	require.Zero(t, tally.Snapshot().Total(metrics.JobsDLQFailed), "it was stored")

	n, err = dlq.Forward(t.Context(), q, sink, opts, pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, 2, stored)
	require.Empty(t, list(t, q, pawl.Filter{}))
}

// Rule: a job that was moved before its turn is skipped; one that was removed while being stored is
// no error; one that was retried meanwhile exists twice, and is reported.
func TestForwardOfWhatMoved(t *testing.T) {
	q := inMemory(t)
	var ids []pawl.ID
	for range 4 {
		ids = append(ids, makeDead(t, q, "mail", "a"))
	}
	sink := dlq.SinkFunc(func(ctx context.Context, dead *pawl.Envelope) error {
		switch dead.ID {
		case ids[0]:
			require.NoError(t, q.Retry(ctx, ids[1], false))
			return q.Delete(ctx, ids[0])
		case ids[2]:
			return q.Retry(ctx, ids[2], false)
		}
		require.Equal(t, ids[3], dead.ID)
		return nil
	})
	n, err := dlq.Forward(t.Context(), q, sink, nil, pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrConflict)
	require.ErrorContains(t, err, ids[2].String())
	require.Equal(t, 1, n)
	require.Equal(t, pawl.Ready, get(t, q, ids[1]).State)
	require.Equal(t, pawl.Ready, get(t, q, ids[2]).State)
}

// Rule: when the context ends, jobs that were not begun stay and are not counted as failures.
func TestForwardEndsWithItsContext(t *testing.T) {
	q := inMemory(t)
	for range 3 {
		makeDead(t, q, "mail", "a")
	}
	ids := list(t, q, pawl.Filter{})
	var tally metrics.Tally
	ctx, cancel := context.WithCancel(t.Context())
	sink := dlq.SinkFunc(func(ctx context.Context, dead *pawl.Envelope) error {
		if dead.ID == ids[1] {
			cancel()
			return ctx.Err()
		}
		return nil
	})
	n, err := dlq.Forward(ctx, q, sink, &dlq.ForwardOptions{Collector: &tally, Logger: hclog.NewNullLogger()}, pawl.Filter{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, n)
	require.Equal(t, ids[1:], list(t, q, pawl.Filter{}))
	require.Equal(t, int64(1), tally.Snapshot().Total(metrics.JobsDLQFailed), "the one that was begun")
}

// Rule: a sink that times out on its own fails only with that job.
func TestForwardGoesOnAfterATimeoutOfTheSink(t *testing.T) {
	q := inMemory(t)
	slow := makeDead(t, q, "mail", "a")
	makeDead(t, q, "mail", "a")
	sink := dlq.SinkFunc(func(_ context.Context, dead *pawl.Envelope) error {
		if dead.ID == slow {
			return context.DeadlineExceeded
		}
		return nil
	})
	n, err := dlq.Forward(t.Context(), q, sink, &dlq.ForwardOptions{Logger: hclog.NewNullLogger()}, pawl.Filter{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, n)
	require.Equal(t, []pawl.ID{slow}, list(t, q, pawl.Filter{}))
}

// Rule: Parallel is the number of jobs forwarded at a time, by default one.
func TestForwardInParallel(t *testing.T) {
	for _, parallel := range []int{0, 1, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			q := inMemory(t)
			for range 100 {
				makeDead(t, q, "mail", "a")
			}
			arrived, gate := make(chan struct{}, 100), make(chan struct{})
			sink := dlq.SinkFunc(func(context.Context, *pawl.Envelope) error {
				arrived <- struct{}{}
				<-gate
				return nil
			})
			done := make(chan int)
			go func() {
				n, err := dlq.Forward(t.Context(), q, sink, &dlq.ForwardOptions{Parallel: parallel}, pawl.Filter{})
				require.NoError(t, err)
				done <- n
			}()
			synctest.Wait()
			require.Len(t, arrived, min(100, max(1, parallel)))
			close(gate)
			require.Equal(t, 100, <-done)
		})
	}
	_, err := dlq.Forward(t.Context(), inMemory(t), nil, &dlq.ForwardOptions{Parallel: -1}, pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrInvalid)
}
