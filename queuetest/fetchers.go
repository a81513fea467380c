package queuetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// keysOf returns the idempotency keys of leases, with - for none.
func keysOf(leases []*pawl.Lease) (text string) {
	for _, l := range leases {
		if l.IdempotencyKey == "" {
			text += "-"
		}
		text += l.IdempotencyKey
	}
	return text
}

// neverBeside has many fetchers take batches of jobs with few keys. The jobs fail until
// they are dead, or succeed in the end.
func neverBeside(name string, succeed bool) test {
	return newTest("many at once, and "+name,
		"Two jobs of one kind and key are never leased at the same time, whoever fetches. After a success, no job of the "+
			"key runs.", func(f *fixture) {
			const jobs, keys, fetchers, runs = 96, 6, 16, 3
			batch := newBatch(jobs)
			for i, e := range batch {
				e.IdempotencyKey, e.Queue = fmt.Sprint(i%keys), []string{"a", "b"}[i/keys%2]
			}
			f.enqueue(batch...)
			var held sync.Map // by key
			var started, acked atomic.Int32
			var wg sync.WaitGroup
			for n := range fetchers {
				wg.Go(func() {
					for i := n; ; i++ {
						leases, err := f.q.Fetch(f.Context(), pawl.Request{
							Queues: []string{"a", "b"}, Max: 1 + i%5, Wait: pawl.WaitFinished,
						})
						if errors.Is(err, pawl.ErrEmpty) {
							return
						}
						if err != nil {
							f.Errorf("fetch: %v", err)
							return
						}
						for _, l := range leases {
							started.Add(1)
							if other, twice := held.LoadOrStore(l.IdempotencyKey, l.ID); twice {
								f.Errorf("jobs %v and %v of key %s are leased at once", other, l.ID, l.IdempotencyKey)
							}
						}
						<-time.After(time.Duration(1+i%3) * time.Millisecond)
						for _, l := range leases {
							held.Delete(l.IdempotencyKey)
							switch {
							case l.Attempts < runs-1 && i%4 == 3:
								err = f.q.Settle(f.Context(), l.Nack(time.Millisecond, errBoom))
							case l.Attempts < runs-1:
								err = f.q.Settle(f.Context(), l.Nack(0, errBoom))
							case succeed:
								acked.Add(1)
								err = f.q.Settle(f.Context(), l.Ack())
							default:
								err = f.q.Settle(f.Context(), l.Abandon(pawl.ReasonExhausted, errBoom))
							}
							if err != nil {
								f.Errorf("settle: %v", err)
							}
						}
					}
				})
			}
			wg.Wait()
			left := f.list(pawl.Filter{})
			if succeed {
				equal(f, acked.Load(), keys, "jobs that succeeded")
				equal(f, len(left), 0, "jobs left")
				return
			}
			equal(f, started.Load(), jobs*runs, "runs")
			equal(f, len(left), jobs, "dead jobs")
			for _, e := range left {
				equal(f, e.State, pawl.Dead, "state")
				equal(f, e.Attempts, runs, "attempts")
			}
		})
}
