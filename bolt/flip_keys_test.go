package bolt

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// newKeyed makes a closed file whose jobs have keys, deadlines and retentions. Kinds that begin
// with "run" may be fetched once the file is open.
func newKeyed(t *testing.T) (s sample) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	s.ids = make(map[string]pawl.ID)
	put := func(kind string, change func(*pawl.Envelope)) {
		e := add(t, q, func(e *pawl.Envelope) { e.Kind, e.Payload = kind, payloadOf(kind); change(e) })
		s.ids[kind] = e.ID
	}
	put("completed", func(e *pawl.Envelope) { e.Retain, e.IdempotencyKey = 1000*time.Hour, "done" })
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
	put("dead", func(e *pawl.Envelope) { e.UniqueKey = "key" })
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	put("run leased", func(e *pawl.Envelope) { e.IdempotencyKey, e.UniqueKey = "effect", "key" })
	leaseOne(t, q)
	put("run unique", func(e *pawl.Envelope) { e.UniqueKey = "key" })
	put("run deadline", func(e *pawl.Envelope) { e.Deadline = time.Now().Add(1000 * time.Hour) })
	put("run effect", func(e *pawl.Envelope) { e.IdempotencyKey = "effect" })
	put("waits", func(e *pawl.Envelope) { e.Delay, e.Deadline = 500*time.Hour, time.Now().Add(1000*time.Hour) })
	require.NoError(t, q.Pause(t.Context(), "paused"))
	put("paused", func(e *pawl.Envelope) { e.Queue = "paused" })
	require.NoError(t, q.Close())
	s.bytes, err = os.ReadFile(path)
	require.NoError(t, err)
	return s
}

// One to three bits are flipped in the rows of keys, effects, deadlines, retentions and queues.
// No job is lost or has wrong data, damage of one job does not delay sound jobs, and the queue
// continues. Only a damaged row of a queue stops that queue.
func TestFlippedBitsOfKeys(t *testing.T) {
	s := newKeyed(t)
	path := filepath.Join(memoryFolder(t), "jobs.db")
	require.NoError(t, os.WriteFile(path, s.bytes, 0o600))
	var rows []storedRow
	found := make(map[string]int)
	for _, r := range rowsOf(t, path) {
		switch r.bucket {
		case string(bucketUnique), string(bucketEffects), string(bucketExpiry), string(bucketCompleted), string(bucketQueues):
			rows = append(rows, r)
			found[r.bucket]++
		}
	}
	require.Equal(t, map[string]int{"unique": 3, "effects": 2, "expiry": 3, "completed": 1, "queues": 2*2 + 8*3}, found)
	flipped := make([]byte, len(s.bytes))
	for seed := range uint64(race.Fewer(150)) {
		random := rand.New(rand.NewPCG(seed, 1))
		copy(flipped, s.bytes)
		queue := false // the row of a queue is damaged
		for range 1 + random.IntN(3) {
			r := rows[random.IntN(len(rows))]
			at, bit := random.IntN(len(r.value)), random.IntN(8)
			for _, place := range r.places {
				if !bytes.HasSuffix(s.bytes[:place], r.key) {
					continue // an empty value occurs elsewhere too
				}
				flipped[place+at] ^= 1 << bit
			}
			queue = queue || r.bucket == string(bucketQueues)
		}
		require.NoError(t, os.WriteFile(path, flipped, 0o600))
		testFlippedKeys(t, s, path, queue)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func testFlippedKeys(t *testing.T, s sample, path string, queue bool) {
	q, err := Open(path, quiet())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ran := make(map[pawl.ID]bool)
	corrupt := func(err error) bool { return queue && errors.Is(err, pawl.ErrCorrupt) }
	for {
		leases, err := q.Fetch(ctx, pawl.Request{Max: 100, Wait: pawl.WaitNot})
		if errors.Is(err, pawl.ErrEmpty) || corrupt(err) {
			break
		}
		require.NoError(t, err)
		for _, l := range leases {
			require.Equal(t, s.ids[l.Kind], l.ID)
			require.Equal(t, string(payloadOf(l.Kind)), string(l.Payload))
			require.False(t, ran[l.ID], "it came twice")
			ran[l.ID] = true
			if err := q.Settle(ctx, l.Ack()); !corrupt(err) {
				require.NoError(t, err)
			}
		}
	}
	if _, err := q.Fetch(ctx, pawl.Request{Queues: []string{"paused"}, Max: 1, Wait: pawl.WaitNot}); !corrupt(err) {
		require.ErrorIs(t, err, pawl.ErrEmpty)
	}
	if err := withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "fresh", Queue: "fresh"}); !corrupt(err) {
		require.NoError(t, err)
	}
	require.NoError(t, q.view(ctx, func(st *store) error {
		one, other := s.ids["run effect"], s.ids["run leased"] // the second one is skipped
		for kind, id := range s.ids {
			skipped := id == one && ran[other] || id == other && ran[one]
			if !ran[id] && !skipped && st.jobs.Get(id[:]) == nil {
				t.Errorf("job %q is lost", kind)
			}
			if !ran[id] && !skipped && !queue && strings.HasPrefix(kind, "run") {
				t.Errorf("job %q did not run", kind)
			}
		}
		return nil
	}))
	require.NoError(t, ctx.Err(), "it took too long")
	require.NoError(t, q.Close())
}
