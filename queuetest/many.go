package queuetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// drain has workers fetch from the clients of a queue until no job is left, at most as many at a time
// as the request says. Handle settles them. It gets a number that grows with each fetch.
func (f *fixture) drain(clients []*fixture, workers int, r pawl.Request, handle func(q pawl.Queue, i int, leases []*pawl.Lease)) {
	ctx := f.patient()
	r.Wait = pawl.WaitFinished
	var wg sync.WaitGroup
	for n := range workers {
		q := clients[n%len(clients)].q
		wg.Go(func() {
			for i := n; ; i++ {
				own := r
				own.Max = 1 + i%r.Max
				leases, err := q.Fetch(ctx, own)
				if errors.Is(err, pawl.ErrEmpty) {
					return
				}
				if err != nil {
					f.Errorf("fetch: %v", err)
					return
				}
				handle(q, i, leases)
			}
		})
	}
	wg.Wait()
}

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
				f.atOnce(12, pawl.ErrLeaseLost, func(i int) error { return verbs[i%len(verbs)].end(f.Context(), f.q, l) })
				for _, l := range f.fetch(9) {
					f.ack(l)
				}
			}
		}),
	newTest("an ID from many at once",
		"Of several concurrent enqueues of one ID one succeeds, and the others get ErrConflict.", func(f *fixture) { f.oneID(f) }).needing(knowingIDs),
}

// atOnce makes calls at the same time. One must succeed, and the others fail with an error that
// matches want.
func (f *fixture) atOnce(calls int, want error, call func(i int) error) {
	f.Helper()
	answers := make(chan error, calls)
	for i := range calls {
		go func() { answers <- call(i) }()
	}
	succeeded := 0
	for range calls {
		if err := <-answers; err == nil {
			succeeded++
		} else {
			f.is(err, want, "a call that came too late")
		}
	}
	equal(f, succeeded, 1, "calls that succeeded")
}

// oneID has clients enqueue one ID at once.
func (f *fixture) oneID(clients ...*fixture) {
	f.Helper()
	id := pawl.NewID(time.Now())
	f.atOnce(10*len(clients), pawl.ErrConflict, func(i int) error {
		return clients[i%len(clients)].try(&pawl.Envelope{ID: id, Kind: "k"})
	})
	equal(f, len(f.list(pawl.Filter{})), 1, "jobs")
}
