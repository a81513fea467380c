package scenario

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

var progress = workflow.DefineValue[int]("progress")

// counting publishes numbers, an hour apart.
func counting(numbers ...int) *workflow.Flow[int, int] {
	return workflow.Define("counting", func(r *workflow.Run, _ int) (int, error) {
		for _, n := range numbers {
			if err := workflow.Sleep(r, "work", time.Hour); err != nil {
				return 0, err
			}
			if err := progress.Publish(r, n); err != nil {
				return 0, err
			}
		}
		return 0, workflow.Sleep(r, "work", time.Hour)
	})
}

// Rule: a watcher gets the current value, then each that differs, and its end when the run has
// ended. Get has the last one, also after the end.
func (suite) ValueIsWatched(t *testing.T, k *kit) {
	f := counting(1, 1, 2, 3)
	k.open(f)
	h := start(k, f, "1", 0)
	_, published, err := progress.Get(t.Context(), k.e, h.Run())
	require.NoError(t, err)
	require.False(t, published)

	next, stop := iter.Pull2(progress.Watch(t.Context(), k.e, h.Run()))
	defer stop()
	for want := 1; want <= 3; want++ {
		n, err, more := next()
		require.True(t, more)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	_, _, more := next()
	require.False(t, more)
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	n, published, err := progress.Get(t.Context(), k.e, h.Run())
	require.NoError(t, err)
	require.True(t, published)
	require.Equal(t, 3, n)
	var seen []int
	for n, err := range progress.Watch(t.Context(), k.e, h.Run()) {
		require.NoError(t, err)
		seen = append(seen, n)
	}
	require.Equal(t, []int{3}, seen, "the last one, after the end")
}

// Rule: a watcher learns why it gets nothing more: there is no such run, the name or the type is
// wrong, its context has ended, or the queue is closed. It may stop at any time.
func (suite) ValueIsNotWatched(t *testing.T, k *kit) {
	f := counting(1)
	k.open(f)
	h := start(k, f, "1", 0)
	first := func(ctx context.Context, v *workflow.Value[int], run pawl.ID) error {
		for _, err := range v.Watch(ctx, k.e, run) {
			return err
		}
		return nil
	}
	require.NoError(t, first(t.Context(), progress, h.Run()))
	require.ErrorIs(t, first(t.Context(), progress, pawl.ID{1}), workflow.ErrNotFound)
	require.ErrorIs(t, first(t.Context(), workflow.DefineValue[int]("a/b"), h.Run()), pawl.ErrInvalid)
	text := workflow.DefineValue[string]("progress")
	_, published, err := text.Get(t.Context(), k.e, h.Run())
	require.ErrorContains(t, err, `published value "progress"`)
	require.False(t, published)

	other := workflow.DefineValue[int]("other")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again := start(k, f, "2", 0)
	require.ErrorIs(t, first(ctx, other, again.Run()), context.Canceled)

	ended := make(chan error, 1)
	k.settle()
	go func() { ended <- first(t.Context(), other, again.Run()) }()
	k.close()
	require.ErrorIs(t, <-ended, pawl.ErrClosed)
}
