package queuetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

var manyTests = []test{
	newTest("holders at once", "A job has one holder at a time, and every enqueued job is run to its end.", func(f *fixture) {
		const jobs, workers = 120, 8
		var held sync.Map // by ID
		var acked, enqueued atomic.Int32
		var wg sync.WaitGroup
		for n := range workers {
			wg.Go(func() {
				for range jobs / workers {
					if err := f.try(newBatch(1)...); err != nil {
						f.Errorf("enqueue: %v", err)
						return
					}
					enqueued.Add(1)
				}
			})
			wg.Go(func() {
				for i := n; acked.Load() < jobs; i++ {
					leases, err := f.q.Fetch(f.Context(), pawl.Request{Max: 1 + i%4, Wait: pawl.WaitFinished})
					if errors.Is(err, pawl.ErrEmpty) {
						<-time.After(time.Millisecond) // the enqueuers are not done
						continue
					}
					if err != nil {
						f.Errorf("fetch: %v", err)
						return
					}
					for _, l := range leases {
						if _, twice := held.LoadOrStore(l.ID, l.Token); twice {
							f.Errorf("job %s has two holders", l.ID)
						}
						v := verbs[[]int{0, 1, 3, 4, 0, 0}[(i+int(l.Token%97))%6]]
						held.Delete(l.ID)
						if err := v.end(f.Context(), f.q, l); err != nil {
							f.Errorf("%s: %v", v.name, err)
						} else if v.name == "ack" {
							acked.Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		equal(f, enqueued.Load(), jobs, "jobs enqueued")
		equal(f, acked.Load(), jobs, "jobs acked")
		equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
	}),
	newTest("settles of one lease at once",
		"A lease is settled once. Of several concurrent settlements one succeeds, and the others get ErrLeaseLost.", func(f *fixture) {
			for range 5 {
				f.add()
				l := f.lease()
				answers := make(chan error, 12)
				for i := range 12 {
					go func() { answers <- verbs[i%len(verbs)].end(f.Context(), f.q, l) }()
				}
				succeeded := 0
				for range 12 {
					err := <-answers
					if err == nil {
						succeeded++
						continue
					}
					f.is(err, pawl.ErrLeaseLost, "a settle that came too late")
				}
				equal(f, succeeded, 1, "settles that succeeded")
				for _, l := range f.fetch(9) {
					f.ack(l)
				}
			}
		}),
	newTest("an ID from many at once",
		"Of several concurrent enqueues of one ID one succeeds, and the others get ErrConflict.", func(f *fixture) {
			id := pawl.NewID(time.Now())
			answers := make(chan error, 8)
			for range 8 {
				go func() { answers <- f.try(&pawl.Envelope{ID: id, Kind: "k"}) }()
			}
			stored := 0
			for range 8 {
				err := <-answers
				if err == nil {
					stored++
					continue
				}
				f.is(err, pawl.ErrConflict, "an enqueue that came too late")
			}
			equal(f, stored, 1, "enqueues that succeeded")
			equal(f, len(f.list(pawl.Filter{})), 1, "jobs")
		}),
}
