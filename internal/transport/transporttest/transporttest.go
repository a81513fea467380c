// Package transporttest has the cases that every engine over a message broker passes: the rows of the table of nack and
// abandon in the documents that this library follows, what the engine refuses, how a worker drains it, and what a fetch of
// several kinds and queues returns. They run in real time, and hold on a machine that stalls for any time.
package transporttest

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Queue is a queue over a broker.
type Queue interface {
	pawl.Queue
	Abilities() pawl.Ability
	Stats(ctx context.Context) (pawl.Stats, error)
	Dead(ctx context.Context, queue, kind string) (*pawl.Envelope, error)
	RetryDead(ctx context.Context, queue, kind string, most int) (int, error)
	Close() error
}

// Options are the settings of a queue that the cases need. A zero field but Lease means the default of the engine.
type Options struct {
	Lease      time.Duration // by default one that no case outlasts
	MaxCrashes int
	OnEvent    func(pawl.Event)
	Collector  metrics.Collector
}

// Engine is an engine to test.
type Engine struct {
	// Name is how errors name the engine.
	Name string

	// New returns what opens clients of one queue that nobody else uses. Clients end with the test.
	New func(t *testing.T, o Options) (open func() Queue)

	// Crashes says that a lease counts as a crash if it expires while its process is alive.
	Crashes bool

	// Misses is after which time a fetch may take a queue for empty that the broker has not delivered from. A fetch of an
	// engine with 0 never does.
	Misses time.Duration

	// ShowsLeases says that Stats counts the leases of all clients, and not those of the client alone.
	ShowsLeases bool
}

// Timeout is how long a client waits for an answer of the broker, which may stall.
const Timeout = 10 * time.Minute

// forever is longer than a case.
const forever = 2 * time.Hour

// Run runs all cases.
func Run(t *testing.T, e Engine) {
	newQueue := e.New
	e.New = func(t *testing.T, o Options) func() Queue {
		o.Lease = cmp.Or(o.Lease, forever)
		return newQueue(t, o)
	}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, e Engine)
	}{
		{"nack without a delay", nackWithoutDelay},
		{"nack with a delay", nackWithDelay},
		{"abandon and retry", abandonAndRetry},
		{"a lease expires", leaseExpires},
		{"a lease expires, and its client fetches again", leaseExpiresAtHome},
		{"a client goes", clientGoes},
		{"extend", extend},
		{"release and snooze", releaseAndSnooze},
		{"poison", poison},
		{"refusals", refusals},
		{"drain", drain},
		{"two kinds at once", twoKindsAtOnce},
		{"turns", turns},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, e)
		})
	}
}

// ErrBoom is why jobs fail.
var ErrBoom = errors.New("boom")

// Keys returns a keyring that signs and verifies.
func Keys(t testing.TB) *pawl.Keyring {
	t.Helper()
	k, err := pawl.NewKeyring("k1", map[string][]byte{"k1": []byte(strings.Repeat("s", 32))})
	require.NoError(t, err)
	return k
}

// Signed enqueues a signed job of kind "k" and returns its ID.
func Signed(t testing.TB, q pawl.Queue) pawl.ID {
	t.Helper()
	e := &pawl.Envelope{Kind: "k", Payload: []byte("\xa5hello"), MaxRetries: 3, Headers: map[string]string{"trace": "7"}}
	done, err := Keys(t).Signing(q).Enqueue(t.Context(), e)
	require.NoError(t, err)
	return done[0].ID
}

// Fetch leases one job of kind "k", for which it waits.
func Fetch(t testing.TB, q pawl.Queue) *pawl.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	leases, err := q.Fetch(ctx, pawl.Request{Kinds: []string{"k"}, Max: 1})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	return leases[0]
}

// None requires that no job of kind "k" is ready.
func None(t testing.TB, q pawl.Queue) {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	require.Empty(t, leases)
}

// Counts returns the counts of the only queue that has jobs.
func Counts(t testing.TB, q Queue) (counts pawl.Counts) {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		if row.Counts != (pawl.Counts{}) {
			require.Zero(t, counts, "two queues have jobs")
			counts = row.Counts
		}
	}
	return counts
}
