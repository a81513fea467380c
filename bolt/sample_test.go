package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// sample is a closed file with a job in each state, each identified by its kind.
type sample struct {
	bytes []byte
	ids   map[string]pawl.ID
}

// payloadOf returns the payload for the job of a kind, so that wrong data is detected.
func payloadOf(kind string) []byte {
	if kind == "large" || kind == "large leased" {
		return bytes.Repeat([]byte(kind), 1000)
	}
	return []byte("payload of " + kind)
}

// newSample makes the file at the time at which every bubble begins.
func newSample(t *testing.T) (s sample) {
	synctest.Test(t, func(t *testing.T) { s = newSampleNow(t) })
	return s
}

func newSampleNow(t *testing.T) sample {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	ctx := context.Background()
	s := sample{ids: make(map[string]pawl.ID)}
	store := func(queue, kind string, delay time.Duration) {
		e := &pawl.Envelope{Kind: kind, Queue: queue, MaxRetries: 3, Payload: payloadOf(kind), Delay: delay}
		require.NoError(t, withid.Enqueue(ctx, q, e))
		s.ids[kind] = e.ID
	}
	lease := func(kinds ...string) []*pawl.Lease {
		for _, kind := range kinds {
			store("", kind, 0)
		}
		leases, err := q.Fetch(ctx, pawl.Request{Max: len(kinds)})
		require.NoError(t, err)
		return leases
	}
	l := lease("dead", "retried")
	require.NoError(t, q.Settle(ctx, l[0].Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	retried := l[1]
	lease("leased", "large leased")
	require.NoError(t, q.Settle(ctx, retried.Nack(0, errors.New("boom"))))
	store("", "delayed", time.Hour)
	store("", "later", 2*time.Hour)
	for _, kind := range []string{"ready", "large", "neighbour"} {
		store("", kind, 0)
	}
	store("other", "other leased", 0)
	_, err = q.Fetch(ctx, pawl.Request{Max: 1, Queues: []string{"other"}})
	require.NoError(t, err)
	store("other", "other", 0)
	store("other", "other delayed", 2*time.Hour)
	require.NoError(t, q.Close())
	s.bytes, err = os.ReadFile(path)
	require.NoError(t, err)
	return s
}

// damage is one change of one row.
type damage struct {
	bucket []byte
	row    func(t *testing.T, s sample, b *bbolt.Bucket) []byte // returns its key
	change func(value []byte) []byte
}

// write makes the file with the damage in it.
func (s sample) write(t *testing.T, all ...damage) string {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "jobs.db")
	require.NoError(t, os.WriteFile(path, s.bytes, 0o600))
	withBolt(t, path, func(tx *bbolt.Tx) error {
		for _, d := range all {
			b := tx.Bucket(bucketRoot).Bucket(d.bucket)
			key := d.row(t, s, b)
			require.NotNil(t, b.Get(key), "no such row")
			if err := b.Put(key, d.change(bytes.Clone(b.Get(key)))); err != nil {
				return err
			}
		}
		return nil
	})
	return path
}

func rowOf(kind string) func(*testing.T, sample, *bbolt.Bucket) []byte {
	return func(t *testing.T, s sample, b *bbolt.Bucket) []byte {
		id := s.ids[kind]
		if b.Get(id[:]) != nil {
			return id[:]
		}
		// In ready, delayed and failed the value begins with the ID, in history the key does.
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if bytes.HasPrefix(v, id[:]) || bytes.HasPrefix(k, id[:]) {
				return bytes.Clone(k)
			}
		}
		return nil
	}
}

func rowAt(k []byte) func(*testing.T, sample, *bbolt.Bucket) []byte {
	return func(*testing.T, sample, *bbolt.Bucket) []byte { return k }
}

// changes are what happens to a stored value. A row's checksum covers its key too, so a row in
// the wrong place is invalid as well.
var changes = []struct {
	name   string
	change func([]byte) []byte
}{
	{"first bit", func(v []byte) []byte { v[0] ^= 0x80; return v }},
	{"bit in the middle", func(v []byte) []byte { v[len(v)/2] ^= 1; return v }},
	{"last bit", func(v []byte) []byte { v[len(v)-1] ^= 1; return v }},
	{"cut", func(v []byte) []byte { return v[:len(v)-1] }},
	{"empty", func([]byte) []byte { return nil }},
	{"longer", func(v []byte) []byte { return append(v, 0) }},
	{"zeros", func(v []byte) []byte { clear(v); return v }},
}

// everyChange runs a test for each change of one row, and for one of them under the race detector.
func everyChange(t *testing.T, bucket []byte, row func(*testing.T, sample, *bbolt.Bucket) []byte, test func(t *testing.T, s sample, path string)) {
	s := newSample(t)
	for _, c := range changes[:race.Fewer(len(changes))] {
		t.Run(fmt.Sprintf("%s/%s", bucket, c.name), func(t *testing.T) {
			path := s.write(t, damage{bucket, row, c.change})
			synctest.Test(t, func(t *testing.T) { test(t, s, path) })
		})
	}
}

// openDamaged is openAt without the final check of the file. A scheduler that a damaged row
// keeps busy reads the clock until it panics.
func openDamaged(t *testing.T, path string) *Queue {
	t.Helper()
	var reads atomic.Int32
	o := quiet()
	o.Now = func() time.Time {
		if reads.Add(1) > 10_000 {
			panic("the scheduler does not rest")
		}
		return time.Now()
	}
	q, err := Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// runAll fetches and acks everything, and returns the kinds, sorted.
func runAll(t *testing.T, q *Queue, queues ...string) (kinds []string) {
	t.Helper()
	for {
		leases := fetch(t, q, 100, queues...)
		if len(leases) == 0 {
			slices.Sort(kinds)
			return kinds
		}
		for _, l := range leases {
			require.Equal(t, string(payloadOf(l.Kind)), string(l.Payload), "wrong data")
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			kinds = append(kinds, l.Kind)
		}
	}
}

// unreadable counts the jobs of a state that a listing cannot read, and requires that the
// listing continues after them.
func unreadable(t *testing.T, q *Queue, state pawl.State, readable int) (n int) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: state}) {
		if err == nil {
			readable--
			continue
		}
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.NotNil(t, e)
		n++
	}
	require.Zero(t, readable, "the listing ended early")
	return n
}

// readyKinds can be fetched from the default queue of a sample as soon as the sample is open.
var readyKinds = []string{"large", "large leased", "leased", "neighbour", "ready", "retried"}

func without(kinds []string, kind string) []string {
	return slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == kind })
}
