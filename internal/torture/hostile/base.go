package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// base is a sound file and its content. Mutations start from it.
type base struct {
	*layout
	jobs   map[pawl.ID]*pawl.Envelope // as read from the sound file
	ids    []pawl.ID                  // IDs of all jobs, in their order
	counts map[string]pawl.Counts     // counts of each queue

	stories map[pawl.ID]*storyOf // stories of its workflow runs, if any
	runs    []pawl.ID            // runs, in order
}

// began is the time of all bases, so the same seed gives the same bytes.
var began = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// limits are the limits of the queues in the bases. Each of them keeps some jobs waiting.
var limits = map[string]pawl.Limits{
	"a":       {Rate: pawl.Rate{Starts: 100, Per: time.Hour, Burst: 8}, Pool: pawl.Pool{Name: "shared", Running: 6}},
	"b":       {Running: 4, MaxWaiting: 1000, Pool: pawl.Pool{Name: "shared", Running: 5}},
	"limited": {RunningPerKey: 2, RatePerKey: pawl.Rate{Starts: 100, Per: time.Hour, Burst: 3, MaxCost: 4}, Fair: true, MaxWaitingPerKey: 1000},
	"ordered": {InOrder: pawl.OrderContinue, Fair: true},
	"held":    {InOrder: pawl.OrderHold},
}

func options() *bolt.Options {
	now := began
	return &bolt.Options{
		Logger: hclog.NewNullLogger(), MaxCrashes: bolt.NoMaxCrashes, Lease: time.Hour,
		Now: func() time.Time { return now }, Limits: limits,
	}
}

// baseSizes are the numbers of jobs in the bases. Small files are fast, large files have
// branch pages.
var baseSizes = []int{4, 24, 24, 60, 110}

// withRuns is the base that also has workflow runs.
const withRuns = 2

// makeBases writes the sound files into a folder, each twice: with a list of free pages, as
// after a clean close, and without, as after a crash.
func makeBases(ctx context.Context, dir string) error {
	for n, jobs := range baseSizes {
		worked := filepath.Join(dir, "worked")
		if err := work(ctx, worked, uint64(n), jobs); err != nil {
			return fmt.Errorf("make a sound file: %w", err)
		}
		ids, err := steadyOf(ctx, worked, uint64(n))
		if err != nil {
			return fmt.Errorf("make a sound file: %w", err)
		}
		for _, crashed := range []bool{false, true} {
			path := filepath.Join(dir, fmt.Sprintf("base-%d-%t", n, crashed))
			if err := inOrder(worked, path, crashed, ids); err != nil {
				return fmt.Errorf("make a sound file: %w", err)
			}
		}
		if err := os.Remove(worked); err != nil {
			return err
		}
	}
	return nil
}

// loadBases reads the files of makeBases.
func loadBases(ctx context.Context, dir string) (bases []*base, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "base-*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		b := &base{jobs: make(map[pawl.ID]*pawl.Envelope)}
		if b.layout, err = layoutOf(path); err != nil {
			return nil, err
		}
		r, err := bolt.OpenReader(path)
		if err != nil {
			return nil, err
		}
		for e, err := range r.Jobs(ctx, pawl.Filter{}) {
			if err != nil {
				return nil, err
			}
			if e.IdempotencyKey != sharedKey && !isRun(e) {
				if err := oracle.SameJob(e); err != nil {
					return nil, err
				}
			}
			b.jobs[e.ID] = e
			b.ids = append(b.ids, e.ID)
		}
		stats, statsErr := r.Stats(ctx)
		if b.counts = countsOf(stats); statsErr == nil && countedIn(b.counts) != len(b.jobs) {
			return nil, fmt.Errorf("a sound file is not sound: %d jobs are listed, the counts are %v", len(b.jobs), b.counts)
		}
		b.stories, b.runs, err = storiesOf(ctx, r)
		if err := errors.Join(err, statsErr, r.Check(ctx), r.Close()); err != nil {
			return nil, fmt.Errorf("a sound file is not sound: %w", err)
		}
		bases = append(bases, b)
	}
	return bases, nil
}

// sharedKey is the idempotency key of several jobs.
const sharedKey = "shared"

// jobID returns the ID of a job of a base, the same in every run.
func jobID(base uint64, n int) pawl.ID {
	r := rand.New(rand.NewPCG(base, uint64(n)))
	id := pawl.NewID(began)
	binary.BigEndian.PutUint64(id[8:], r.Uint64())
	id[6], id[7] = id[6]&0xf0|byte(n>>8&0xf), byte(n)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// work makes jobs in every state, with histories, keys and leases.
func work(ctx context.Context, path string, seed uint64, jobs int) (err error) {
	q, err := bolt.Open(path+".live", options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(), os.Remove(path+".live")) }()
	for n := range jobs {
		e := oracle.JobOf(jobID(seed, n))
		if n%7 == 3 { // it is blocked while the job before it is leased
			e.IdempotencyKey = sharedKey
		}
		if err := withid.Enqueue(ctx, q, e); err != nil {
			return err
		}
	}
	for range 3 {
		leases, err := q.Fetch(ctx, pawl.Request{Queues: oracle.Queues, Max: jobs, Wait: pawl.WaitNot})
		if err != nil && !errors.Is(err, pawl.ErrEmpty) {
			return err
		}
		for n, l := range leases {
			if err := settle(ctx, q, l, n); err != nil {
				return err
			}
		}
	}
	if err := q.Pause(ctx, oracle.Queues[1]); err != nil {
		return err
	}
	if seed == withRuns {
		c, err := newCrew(ctx, q, "step", true)
		if err != nil {
			return err
		}
		if err := c.makeRuns(); err != nil {
			return fmt.Errorf("make runs: %w", err)
		}
	}
	return q.Backup(ctx, path)
}

// settle settles the n-th lease in a way that depends on n, or leaves it.
func settle(ctx context.Context, q *bolt.Queue, l *pawl.Lease, n int) error {
	cause := errors.New(strings.Repeat("boom ", n%40))
	ways := []pawl.Settlement{
		l.Ack(), l.Nack(0, cause), l.Nack(time.Hour, cause), l.Abandon(pawl.ReasonPermanent, cause), l.Release(), l.Snooze(time.Hour),
	}
	if n %= len(ways) + 2; n < len(ways) {
		return q.Settle(ctx, ways[n])
	}
	return nil // it stays leased
}

// inOrder copies a queue's file bucket by bucket, so the same content gives the same pages:
// bbolt writes the buckets of one transaction in random order. It replaces the random tokens
// of leases and IDs of runs by fixed values.
func inOrder(from, to string, crashed bool, ids steady) (err error) {
	src, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := bbolt.Open(to, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType, NoFreelistSync: crashed, InitialMmapSize: 0})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return src.View(func(tx *bbolt.Tx) error {
		for _, root := range rootsOf(tx) {
			err := tx.Bucket(root).ForEachBucket(func(name []byte) error {
				return dst.Update(func(into *bbolt.Tx) error {
					return copyBucket(tx.Bucket(root).Bucket(name), into, root, name, ids)
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

var (
	rootName   = []byte("pawl")
	leasedName = []byte("leased")
)

// leaseWidth is the number of bytes in the row of a lease of a job without a key.
const leaseWidth = 42

func copyBucket(from *bbolt.Bucket, into *bbolt.Tx, root, name []byte, ids steady) error {
	above, err := into.CreateBucketIfNotExists(root)
	if err != nil {
		return err
	}
	b, err := above.CreateBucket(name)
	if err != nil {
		return err
	}
	if err := b.SetSequence(from.Sequence()); err != nil {
		return err
	}
	return from.ForEach(func(k, v []byte) error {
		if v == nil { // an empty bucket in place of a row
			_, err := b.CreateBucket(k)
			return err
		}
		if string(name) == string(leasedName) && len(v) >= leaseWidth {
			v = slices.Clone(v)
			binary.BigEndian.PutUint64(v, 7)
			seal(k, v)
		}
		k, v = ids.row(string(name), k, v)
		return b.Put(k, v)
	})
}
