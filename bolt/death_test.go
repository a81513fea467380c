package bolt

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// lockedBuffer is a log that the queue writes while the test reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

// Rule: each job that dies leaves one error-level line with its ID, kind, attempts and last
// error, whatever the reason of its death.
func TestOneLineForEachDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		q := openTest(t, &Options{MaxCrashes: 1, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Error})})
		for _, death := range []struct {
			reason pawl.Reason
			error  string
			end    func(e *pawl.Envelope)
		}{
			{pawl.ReasonExhausted, "boom", func(*pawl.Envelope) {
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonExhausted, errBoom)))
			}},
			{pawl.ReasonPoison, "crashed 1 times", func(*pawl.Envelope) { leaseOne(t, q); expire(q) }},
			{pawl.ReasonCancelled, "it was cancelled", func(e *pawl.Envelope) { require.NoError(t, q.Cancel(t.Context(), e.ID)) }},
			{pawl.ReasonDeadline, "its deadline has passed", func(*pawl.Envelope) { pass(time.Hour); synctest.Wait() }},
		} {
			e := add(t, q, func(e *pawl.Envelope) { e.Kind, e.Deadline = "mortal", time.Now().Add(time.Hour) })
			log.Reset()
			death.end(e)
			require.Equal(t, 1, strings.Count(log.String(), "[ERROR]"), log.String())
			for _, part := range []string{e.ID.String(), "kind=mortal", "reason=" + string(death.reason), "attempts=", death.error} {
				require.Contains(t, log.String(), part)
			}
		}
	})
}

// Rule: a failed commit emits no events.
func TestNoEventOfAFailedCommit(t *testing.T) {
	var emitted []pawl.EventType
	q := openTest(t, &Options{OnEvent: func(e pawl.Event) { emitted = append(emitted, e.Type) }})
	l := func() *pawl.Lease { add(t, q, nil); return leaseOne(t, q) }()
	emitted = nil
	replaceCommit(t, q, func(tx *bbolt.Tx) error {
		require.NoError(t, tx.Rollback())
		return syscall.EIO
	})
	require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrUnknownOutcome)
	require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrPoisoned)
	require.NoError(t, q.Close())
	require.Empty(t, emitted)
}

// Rule: the rows of an idempotency key are removed when its time is over.
func TestEffectsGoWithTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		rows := func() (effects, expiry int) {
			require.NoError(t, q.view(t.Context(), func(s *store) error {
				effects, expiry = s.effects.bucket().Stats().KeyN, s.expiry.bucket().Stats().KeyN
				return nil
			}))
			return effects, expiry
		}
		for _, ttl := range []time.Duration{time.Minute, 0} { // 0 means a day
			add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey, e.IdempotencyTTL = "key "+ttl.String(), ttl })
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
		}
		effects, expiry := rows()
		require.Equal(t, []int{2, 2}, []int{effects, expiry})
		pass(time.Minute)
		synctest.Wait()
		effects, expiry = rows()
		require.Equal(t, []int{1, 1}, []int{effects, expiry})
		pass(24 * time.Hour)
		synctest.Wait()
		effects, expiry = rows()
		require.Equal(t, []int{0, 0}, []int{effects, expiry})
	})
}
