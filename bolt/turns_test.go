package bolt

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Weights still apply when the times of turns are reset, and no queue waits long then.
func TestWeightsOverTheEndOfTime(t *testing.T) {
	const rounds = 400
	for _, begin := range []uint64{0, lastTurn - 1, lastTurn - 50*wholeTurn, lastTurn, math.MaxUint64 - 50*wholeTurn, math.MaxUint64 - 1} {
		t.Run(fmt.Sprint(begin), func(t *testing.T) {
			ts := turns{queues: make(map[queueNumber]*turn), now: begin}
			sources := []*source{{queue: 1, turn: ts.of(1), weight: 1}, {queue: 2, turn: ts.of(2), weight: 3}, {queue: 3, turn: ts.of(3), weight: 1}}
			given := make(map[queueNumber]int)
			for n := range rounds {
				s := sources[ts.next(sources)]
				ts.took(s, 0)
				ts.keep()
				given[s.queue]++
				for _, q := range []queueNumber{1, 3} {
					require.InDelta(t, float64(n)/5, given[q], 2, "turns of queue %d", q)
				}
			}
			require.InDelta(t, 3*rounds/5, given[2], 2)
			require.Less(t, ts.now, uint64(lastTurn+wholeTurn))
		})
	}
}

// An undone turn leaves no trace, and earlier turns stay.
func TestTurnsAreUndone(t *testing.T) {
	ts := turns{queues: make(map[queueNumber]*turn)}
	a, b := &source{queue: 1, turn: ts.of(1), weight: 1}, &source{queue: 2, turn: ts.of(2), weight: 2}
	ts.took(a, 0.25)
	ts.took(b, 0.5)
	before, now := map[queueNumber]turn{1: *ts.of(1), 2: *ts.of(2)}, ts.now
	kept := len(ts.taken)
	for range 3 {
		ts.took(a, 0.75)
		ts.took(b, 0)
	}
	ts.undo(kept)
	require.Equal(t, before, map[queueNumber]turn{1: *ts.of(1), 2: *ts.of(2)})
	require.Equal(t, now, ts.now)
	ts.undo(0)
	require.Equal(t, map[queueNumber]turn{1: {}, 2: {}}, map[queueNumber]turn{1: *ts.of(1), 2: *ts.of(2)})
	require.Zero(t, ts.now)
}

// standing is the scheduler's state: whose turn it is, and the credit of retries.
func standing(t *testing.T, q *Queue) (queues map[queueNumber]turn, now uint64) {
	t.Helper()
	queues = make(map[queueNumber]turn)
	require.NoError(t, q.do(t.Context(), visit(func() {
		for n, q := range maps.All(q.scheduler.turns.queues) {
			if *q != (turn{}) {
				queues[n] = *q
			}
		}
		now = q.scheduler.turns.now
	})))
	return queues, now
}

// inTurn has a queue "a" with two retries and two first attempts, which come first, and a queue
// "b" with two jobs.
func inTurn(t *testing.T, q *Queue) {
	t.Helper()
	for range 2 {
		add(t, q, func(e *pawl.Envelope) { e.Kind, e.Queue = "r", "a" })
	}
	for _, l := range fetch(t, q, 2, "a") {
		require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
	}
	for range 2 {
		add(t, q, func(e *pawl.Envelope) { e.Kind, e.Queue, e.Priority = "a", "a", 1 })
		add(t, q, func(e *pawl.Envelope) { e.Kind, e.Queue = "b", "b" })
	}
}

var inTurnRequest = pawl.Request{Queues: []string{"a", "b"}, Max: 1, RetryShare: 0.5, Wait: pawl.WaitNot}

// inTurnOrder fetches n jobs of inTurn, one by one, and returns their kinds.
func inTurnOrder(t *testing.T, q *Queue, n int) string {
	t.Helper()
	var order strings.Builder
	for range n {
		leases, err := q.Fetch(t.Context(), inTurnRequest)
		require.NoError(t, err)
		order.WriteString(kindsOf(leases))
	}
	return order.String()
}

// A commit refused by the disk spends no turn and counts for no retry: the fetch that is
// retried, or the next one, gets what this one would have received.
func TestRefusedCommitSpendsNoTurn(t *testing.T) {
	for _, refused := range []int{0, 1, 2, 3, 4, 6} {
		t.Run(fmt.Sprint(refused), func(t *testing.T) {
			q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
			inTurn(t, q)
			left := refused
			replaceCommit(t, q, func(tx *bbolt.Tx) error {
				if left--; left < 0 {
					return tx.Commit()
				}
				_ = tx.Rollback()
				return refusals[0]
			})
			failed, given := 0, ""
			for given == "" {
				queues, now := standing(t, q)
				leases, err := q.Fetch(t.Context(), inTurnRequest)
				if err == nil {
					given = kindsOf(leases)
					break
				}
				require.ErrorIs(t, err, ErrDisk)
				failed++
				again, nowAgain := standing(t, q)
				require.Equal(t, queues, again)
				require.Equal(t, now, nowAgain)
			}
			require.Equal(t, refused/2, failed, "a fetch is tried twice")
			require.Equal(t, "babrar", given+inTurnOrder(t, q, 5))
		})
	}
}

// hook is a bbolt logger that calls a function as soon as a row is put.
type hook struct {
	bbolt.Logger
	putting func()
}

func (h *hook) Debug(...any)          {}
func (h *hook) Info(...any)           {}
func (h *hook) Infof(string, ...any)  {}
func (h *hook) Error(...any)          {}
func (h *hook) Errorf(string, ...any) {}

func (h *hook) Debugf(format string, _ ...any) {
	if fn := h.putting; fn != nil && strings.HasPrefix(format, "Putting key") {
		h.putting = nil
		fn()
	}
}

// A fetch that is withdrawn while its jobs are being chosen takes no turn.
func TestWithdrawnFetchSpendsNoTurn(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	log := new(hook)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Logger: log})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		checkFile(t, path)
	})
	q := openOver(t, db, &Options{Lease: time.Hour, Logger: hclog.NewNullLogger()})
	add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = "key" })
	holder := leaseOne(t, q)
	inTurn(t, q)
	add(t, q, func(e *pawl.Envelope) { e.Queue, e.Priority, e.IdempotencyKey = "b", 2, "key" }) // it is blocked, and the walk continues
	queues, now := standing(t, q)

	ctx, cancel := context.WithCancel(t.Context())
	answer, answered := make(chan error, 1), make(chan struct{})
	require.NoError(t, q.do(t.Context(), visit(func() {
		log.putting = func() {
			cancel()
			<-answered
		}
	})))
	go func() {
		defer close(answered)
		_, err := q.Fetch(ctx, inTurnRequest)
		answer <- err
	}()
	require.ErrorIs(t, <-answer, pawl.ErrNotAccepted)
	again, nowAgain := standing(t, q)
	require.Equal(t, queues, again)
	require.Equal(t, now, nowAgain)
	require.Equal(t, 1, blockedJobs(t, q), "it was withdrawn in the middle")
	require.Equal(t, "babrar", inTurnOrder(t, q, 6))
	require.NoError(t, q.Settle(t.Context(), holder.Ack()))
}
