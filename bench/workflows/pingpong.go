package workflows

import (
	"context"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/gopawl/pawl/workflow"
)

// A player is a store that plays ping-pong: one run receives a message, answers it in a step, and waits
// for the next.
type player interface {
	// serve starts a run of so many rounds. The caller sends its messages, and end returns after the last.
	serve(ctx context.Context, rounds int) (send func(i int) error, end func() error, err error)
	answers() <-chan int
}

// play sends each message after the answer to the one before, and returns how long that took.
func play(ctx context.Context, p player, rounds int) (took time.Duration, err error) {
	send, end, err := p.serve(ctx, rounds)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for i := range rounds {
		if err := send(i); err != nil {
			return 0, fmt.Errorf("message %d: %w", i, err)
		}
		if answer := <-p.answers(); answer != i {
			return 0, fmt.Errorf("message %d: its answer is %d", i, answer)
		}
	}
	took = time.Since(began)
	return took, end()
}

var pawlPing = workflow.DefineSignal[int]("ping")

// pawlPong is the run of pawl, which answers into a channel.
func pawlPong(answers chan<- int) *workflow.Flow[int, int] {
	return workflow.Define("pong", func(r *workflow.Run, n int) (int, error) {
		for range n {
			i, err := pawlPing.Wait(r, workflow.Forever)
			if err != nil {
				return 0, err
			}
			if _, err := workflow.Step(r, "answer", func(context.Context) (int, error) { answers <- i; return i, nil }); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

func (s *pawlStore) answers() <-chan int { return s.answered }

func (s *pawlStore) serve(ctx context.Context, rounds int) (send func(i int) error, end func() error, err error) {
	h, err := s.pong.Start(ctx, s.engine, "pong", rounds)
	if err != nil {
		return nil, nil, err
	}
	send = func(i int) error { return pawlPing.Send(ctx, s.engine, h.Run(), i, "") }
	end = func() error { _, err := h.Result(ctx); return err }
	return send, end, nil
}

// dbosPong is the run of DBOS, which answers into a channel.
func dbosPong(answers chan<- int) func(dbos.Context, int) (int, error) {
	return func(ctx dbos.Context, n int) (int, error) {
		for range n {
			i, err := dbos.Recv[int](ctx, "ping", time.Minute)
			if err != nil {
				return 0, err
			}
			step := func(context.Context) (int, error) { answers <- i; return i, nil }
			if _, err := dbos.RunAsStep(ctx, step, dbos.WithStepName("answer")); err != nil {
				return 0, err
			}
		}
		return n, nil
	}
}

func (s *dbosStore) answers() <-chan int { return s.answered }

func (s *dbosStore) serve(_ context.Context, rounds int) (send func(i int) error, end func() error, err error) {
	h, err := dbos.RunWorkflow(s.ctx, s.pong, rounds, dbos.WithWorkflowID("pong"))
	if err != nil {
		return nil, nil, err
	}
	send = func(i int) error { return dbos.Send(s.ctx, "pong", i, "ping") }
	end = func() error { _, err := h.GetResult(); return err }
	return send, end, nil
}
