package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

func TestSmoke(t *testing.T) {
	q, err := bolt.Open(t.TempDir()+"/x.db", nil)
	require.NoError(t, err)
	defer q.Close()
	approved := workflow.DefineSignal[string]("approved")
	double := workflow.Define("double", func(r *workflow.Run, n int) (int, error) {
		return workflow.Step(r, "double", func(context.Context) (int, error) { return 2 * n, nil })
	})
	calls := 0
	f := workflow.Define("sum", func(r *workflow.Run, n int) (int, error) {
		sum := 0
		for i := range n {
			v, err := workflow.Step(r, "add", func(context.Context) (int, error) { calls++; return i, nil })
			if err != nil {
				return 0, err
			}
			sum += v
		}
		if err := workflow.Sleep(r, "nap", 300*time.Millisecond); err != nil {
			return 0, err
		}
		who, err := approved.Wait(r, time.Hour)
		if err != nil {
			return 0, err
		}
		d, err := workflow.Call(r, "twice", double, sum)
		if err != nil {
			return 0, err
		}
		xs, err := workflow.Each(r, "item", []int{1, 2, 3}, 2, func(r *workflow.Run, i int) (int, error) {
			return workflow.Call(r, "d", double, i)
		})
		if err != nil {
			return 0, err
		}
		return d + len(who) + xs[0] + xs[1] + xs[2], nil
	})
	e := workflow.Open(q, nil)
	w := worker.New(q, &worker.Options{Concurrency: 4})
	require.NoError(t, e.Handle(t.Context(), w, f, double))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	h, err := f.Start(ctx, e, "a", 4)
	require.NoError(t, err)
	go func() {
		time.Sleep(time.Second)
		fmt.Println(approved.Send(ctx, e, h.Run(), "bob", ""))
	}()
	tctx, c := context.WithTimeout(ctx, 5*time.Second)
	defer c()
	out, err := h.Result(tctx)
	j, _ := e.Journal(ctx, h.Run(), true)
	for _, x := range j {
		fmt.Printf("%+v\n", x)
	}
	fmt.Println(out, err, calls)
	if err != nil {
		i, _ := h.Info(ctx)
		fmt.Printf("%+v\n", i)
		j, err := q.Job(ctx, h.Run())
		fmt.Println("STATE", j.State, j.NotBefore, err)
		panic("x")
	}
	stop()
	<-done
	require.NoError(t, err)
	require.Equal(t, 12+3+12, out)
	require.Equal(t, 4, calls)
}
