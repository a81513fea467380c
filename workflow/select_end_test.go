package workflow_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// slowReads is a queue whose next read lasts until everything else waits.
type slowReads struct {
	*memory.Queue
	next atomic.Pointer[func()] // called before the read
}

func (q *slowReads) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	if begin := q.next.Swap(nil); begin != nil {
		(*begin)()
		synctest.Wait()
	}
	return q.Queue.ViewRows(ctx, fn)
}

// Rule: a branch that ends while a Select looks at its cases is selected.
func TestBranchThatEndsWhileASelectLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(nil)
		defer q.Close()
		slow := &slowReads{Queue: q}
		f := workflow.Define("f", func(r *workflow.Run, _ string) (out string, err error) {
			looks := make(chan struct{})
			b := workflow.Go(r, "branch", func(*workflow.Run) (string, error) {
				<-looks
				return "ended", nil
			})
			begin := func() { close(looks) }
			slow.next.Store(&begin)
			_, err = workflow.Select(r, "branch", b.Case(&out))
			return out, err
		})
		e := workflow.Open(slow, &workflow.Options{Logger: hclog.NewNullLogger()})
		w := worker.New(slow, &worker.Options{Logger: hclog.NewNullLogger()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble's time
		defer cancel()
		require.NoError(t, e.Handle(ctx, w, f))
		h, err := f.Start(ctx, e, "1", "")
		require.NoError(t, err)
		require.NoError(t, w.Drain(ctx, pawl.WaitFinished))
		out, err := h.Result(ctx)
		require.NoError(t, err)
		require.Equal(t, "ended", out)
	})
}
