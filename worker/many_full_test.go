package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: no job joins a call that is full, however many jobs start at the same time.
func TestManyFullCall(t *testing.T) {
	var most, ran atomic.Int64
	b := &batcher[int]{most: 2, wait: time.Millisecond, fn: func(_ context.Context, jobs []*pawl.Job[int]) error {
		ran.Add(int64(len(jobs)))
		for n := most.Load(); n < int64(len(jobs)) && !most.CompareAndSwap(n, int64(len(jobs))); n = most.Load() {
		}
		return nil
	}}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 500 {
				if err := b.handle(t.Context(), new(pawl.Job[int])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 2, most.Load())
	require.EqualValues(t, 64*500, ran.Load())
}
