package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// shortest is the length of a lease in the first round of a case.
const shortest = 2 * time.Second

// Round is one try of a case that has to renew its leases in real time. Each of its steps renews all of them. So a lease
// holds for the whole next step too if each step takes less than half of its length.
type Round struct {
	testing.TB
	Length time.Duration // of a lease

	began   time.Time // the step
	slowest time.Duration
	void    bool // however fast it was
	failure string
}

// Rounds runs a case until a round shows that it holds or fails. A machine may stall for any time, and so may take the
// leases of a case away. So a failure counts only if each step was fast enough. Otherwise the next round has leases twice
// as long.
func Rounds(t *testing.T, shortest time.Duration, run func(r *Round)) {
	t.Helper()
	for length := shortest; ; length *= 2 {
		r := &Round{TB: t, Length: length, began: time.Now()}
		done := make(chan struct{})
		go func() { // which FailNow ends
			defer close(done)
			run(r)
		}()
		<-done
		r.Step()
		switch {
		case r.failure == "" || t.Failed():
			return
		case r.slowest < length/2 && !r.void:
			t.Fatal(r.failure)
		}
		t.Logf("a step took %v, too long for leases of %v, so this failure does not count: %s", r.slowest, length, r.failure)
	}
}

// Step ends a step and begins the next.
func (r *Round) Step() {
	now := time.Now()
	r.slowest = max(r.slowest, now.Sub(r.began))
	r.began = now
}

// voidIfSlower says that failures of the round do not count if a step was slower.
func (r *Round) voidIfSlower(step time.Duration) {
	r.Step()
	r.void = r.void || r.slowest > step
}

// fetch begins a step, and leases up to n jobs of kind "k", for which it waits. It renews leases meanwhile.
func (r *Round) fetch(q Queue, n int, held []*pawl.Lease) (leases []*pawl.Lease) {
	r.wait(q, held, func() (err error) {
		leases, err = q.Fetch(r.Context(), pawl.Request{Kinds: []string{"k"}, Max: n})
		return err
	})
	return leases
}

// none requires that no job of kind "k" becomes ready before a context has ended. It renews leases meanwhile.
func (r *Round) none(ctx context.Context, q Queue, held []*pawl.Lease) {
	r.wait(q, held, func() error {
		leases, err := q.Fetch(ctx, pawl.Request{Kinds: []string{"k"}, Max: 1})
		if len(leases) > 0 || !errors.Is(err, context.Cause(ctx)) {
			return fmt.Errorf("a fetch returned %d leases, %w", len(leases), err)
		}
		return nil
	})
}

// wait waits for fn, which must not fail. It renews leases of q meanwhile, so that no step is long on a machine that does
// not stall.
func (r *Round) wait(q Queue, held []*pawl.Lease, fn func() error) {
	r.Step()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			r.Step()
			require.NoError(r, err)
			return
		case <-beat.C:
			r.extend(q, held)
		}
	}
}

// extend begins a step, and extends leases, all of which hold.
func (r *Round) extend(q Queue, leases []*pawl.Lease) {
	r.Step()
	if len(leases) == 0 {
		return
	}
	lost, err := q.Extend(r.Context(), leases...)
	require.NoError(r, err)
	require.Empty(r, lost)
}

// Errorf notes why the round failed.
func (r *Round) Errorf(format string, args ...any) { r.failure += fmt.Sprintf(format, args...) }

// FailNow ends the round.
func (r *Round) FailNow() {
	if r.failure == "" {
		r.failure = "the round failed"
	}
	runtime.Goexit()
}
