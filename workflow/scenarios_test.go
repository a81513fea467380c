package workflow_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/scenario"
)

// TestScenarios proves the promises of workflows over package bolt.
func TestScenarios(t *testing.T) {
	scenario.Run(t, scenario.Store{
		ErrDisk: bolt.ErrDisk,
		Open: func(t testing.TB, path string, o scenario.Options) scenario.Queue {
			q, err := bolt.Open(path, &bolt.Options{Now: o.Now, MaxCrashes: o.MaxCrashes, Logger: hclog.NewNullLogger()})
			require.NoError(t, err)
			return &file{q}
		},
	})
}

// file is a queue in a file.
type file struct{ *bolt.Queue }

// Counts implements [scenario.Queue].
func (f *file) Counts(ctx context.Context) (map[string]pawl.Counts, error) {
	stats, err := f.Stats(ctx)
	counts := make(map[string]pawl.Counts)
	for _, row := range stats.Queues {
		counts[row.Name] = row.Counts
	}
	return counts, err
}

// counters is the bucket of the app.
var counters = []byte("counters")

// Counters implements [scenario.Queue].
func (f *file) Counters(ctx context.Context) (map[string]uint64, error) {
	all := make(map[string]uint64)
	return all, f.View(ctx, func(tx *bbolt.Tx) error {
		b := tx.Bucket(counters)
		if b == nil {
			return nil
		}
		return b.ForEach(func(key, value []byte) error {
			all[string(key)] = binary.BigEndian.Uint64(value)
			return nil
		})
	})
}

// Commits implements [scenario.Queue].
func (f *file) Commits(ctx context.Context) (n int, err error) {
	err = f.View(ctx, func(tx *bbolt.Tx) error {
		n = tx.ID()
		return nil
	})
	return n, err
}

// Damage implements [scenario.Queue].
func (f *file) Damage(ctx context.Context, id pawl.ID) error {
	return f.Queue.Update(ctx, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("pawl")).Bucket([]byte("jobs"))
		value := bytes.Clone(b.Get(id[:]))
		if value == nil {
			return pawl.ErrNotFound
		}
		value[len(value)-1] ^= 1
		return b.Put(id[:], value)
	})
}

// fault is a panic that the queue takes for a memory fault: the queue stops immediately,
// and reports no outcome of the commit.
type fault struct{}

func (fault) Error() string { return "a fault of the test" }
func (fault) Addr() uintptr { return 0 }

// Crash implements [scenario.Queue].
func (f *file) Crash() { panic(fault{}) }

// Update implements [workflow.Transactor].
func (f *file) Update(ctx context.Context, fn func(scenario.Tx) error) error {
	return f.Queue.Update(ctx, func(tx *bbolt.Tx) error { return fn(fileTx{tx}) })
}

// MutateTx implements [workflow.Transactor].
func (f *file) MutateTx(tx scenario.Tx, m driver.Mutation) error {
	return f.Queue.MutateTx(tx.(fileTx).Tx, m)
}

// In implements [workflow.Transactor].
func (f *file) In(tx scenario.Tx) pawl.Enqueuer { return f.Queue.In(tx.(fileTx).Tx) }

// fileTx is a transaction of a file.
type fileTx struct{ *bbolt.Tx }

// Count implements [scenario.Tx].
func (tx fileTx) Count(name string) (uint64, error) {
	b, err := tx.CreateBucketIfNotExists(counters)
	if err != nil {
		return 0, err
	}
	n := uint64(1)
	if value := b.Get([]byte(name)); value != nil {
		n += binary.BigEndian.Uint64(value)
	}
	return n, b.Put([]byte(name), binary.BigEndian.AppendUint64(nil, n))
}
