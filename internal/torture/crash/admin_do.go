package crash

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// The suffixes of the files beside a queue.
const (
	compacted = ".compacted"
	backup    = ".backup"
)

// leased is the number of leases to recover. That takes more than one commit.
const leased = 5500

// store opens a new queue with jobs.
func store(path string, jobs int, job func(pawl.ID) *pawl.Envelope) (*bolt.Queue, error) {
	q, err := bolt.Open(path, oracle.Options())
	if err != nil {
		return nil, err
	}
	var batch []*pawl.Envelope
	for range jobs {
		batch = append(batch, job(pawl.NewID(time.Now())))
	}
	return q, withid.Enqueue(context.Background(), q, batch...)
}

// leasedFile makes the file of a process that was killed with many leases.
func leasedFile(path string) error {
	q, err := store(path, leased, func(id pawl.ID) *pawl.Envelope { return &pawl.Envelope{ID: id, Kind: "k", Queue: "a"} })
	for n := 0; err == nil && n < leased; {
		var leases []*pawl.Lease
		leases, err = q.Fetch(context.Background(), pawl.Request{Queues: oracle.Queues, Max: 1000, Wait: pawl.WaitNot})
		n += len(leases)
	}
	if err != nil {
		return err
	}
	killed := path + ".killed" // no process writes, so the copy is what a kill would leave
	return errors.Join(harness.CopyFile(path, killed), q.Close(), os.Rename(killed, path))
}

// mixedFile makes a file with jobs in all states except leased, and with free pages.
func mixedFile(path string) error {
	ctx := context.Background()
	q, err := store(path, 800, oracle.JobOf)
	if err != nil {
		return err
	}
	leases, err := q.Fetch(ctx, pawl.Request{Queues: oracle.Queues, Max: 400, Wait: pawl.WaitNot})
	for i, l := range leases {
		v := oracle.Verbs[0]
		if i%2 == 0 {
			v = oracle.Verbs[i/2%len(oracle.Verbs)]
		}
		err = errors.Join(err, v.Do(ctx, q, l))
	}
	return errors.Join(err, q.Close())
}

// still returns options with a stopped clock, long before any job in a file is due, so only
// calls change the file.
func still() *bolt.Options {
	o := oracle.Options()
	o.Now = func() time.Time { return time.Unix(1e9, 0) }
	return o
}

// openAlone opens a file and ends: an open creates and recovers.
func openAlone(path string, _ uint64) error {
	_, err := bolt.Open(path, still())
	return err
}

// compact compacts a file into a new one, and then in place.
func compact(path string, _ uint64) error {
	if err := os.Remove(path + compacted); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // left by a killed process
	}
	q, err := bolt.Open(path, still())
	if err != nil {
		return err
	}
	if err := errors.Join(q.Compact(context.Background(), path+compacted), q.Close()); err != nil {
		return err
	}
	return bolt.CompactInPlace(context.Background(), path, still())
}

// linesBefore is the number of lines of the story before the close.
const linesBefore = 100

// backUp backs up a queue at work.
func backUp(path string, seed uint64) error {
	ctx, stop := context.WithCancel(context.Background())
	return beside(ctx, path, seed, harness.Emit, func(q *bolt.Queue) (err error) {
		defer stop()
		for n := 0; n < 3 && err == nil; n++ {
			if err = os.Remove(path + backup); err == nil || errors.Is(err, os.ErrNotExist) {
				err = q.Backup(ctx, path+backup)
			}
		}
		return err
	})
}

// workAndClose closes a queue at work.
func workAndClose(path string, seed uint64) error {
	enough := make(chan struct{})
	emit := oracle.After(linesBefore, harness.Emit, func() { close(enough) })
	return beside(context.Background(), path, seed, emit, func(q *bolt.Queue) error {
		<-enough
		return q.Close()
	})
}

// beside opens a queue and uses it while a workload is at work.
func beside(ctx context.Context, path string, seed uint64, emit oracle.Emit, use func(*bolt.Queue) error) error {
	q, err := bolt.Open(path, oracle.Options())
	if err != nil {
		return err
	}
	var working sync.WaitGroup
	var failed error
	working.Go(func() {
		failed = oracle.Workload{Seed: seed, Producers: 2, Consumers: 2, Batch: 4}.Run(ctx, q, emit)
	})
	err = use(q)
	working.Wait()
	return errors.Join(err, failed)
}
