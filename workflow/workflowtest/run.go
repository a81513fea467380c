package workflowtest

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Run is a run of a flow. Unlike a [workflow.Handle] it survives crashes.
type Run[Out any] struct {
	k    *Kit
	run  pawl.ID
	id   string
	find func() (*workflow.Handle[Out], error)
}

// Start starts a run and settles, so that the run waits or has ended. To start without settling, use
// the flow's Start with [Kit.Engine].
func Start[In, Out any](k *Kit, f *workflow.Flow[In, Out], id string, in In, opts ...workflow.StartOption) *Run[Out] {
	k.t.Helper()
	h, err := f.Start(k.t.Context(), k.engine, id, in, opts...)
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	k.Settle()
	return &Run[Out]{k: k, run: h.Run(), id: id, find: func() (*workflow.Handle[Out], error) {
		return f.Handle(k.t.Context(), k.engine, id)
	}}
}

// Of returns a run that the program or another run started.
func Of[In, Out any](k *Kit, f *workflow.Flow[In, Out], id string) *Run[Out] {
	k.t.Helper()
	find := func() (*workflow.Handle[Out], error) { return f.Handle(k.t.Context(), k.engine, id) }
	h, err := find()
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	return &Run[Out]{k: k, run: h.Run(), id: id, find: find}
}

// Send sends a signal and settles.
func Send[Out, T any](r *Run[Out], s *workflow.Signal[T], value T) {
	r.k.t.Helper()
	if err := s.Send(r.k.t.Context(), r.k.engine, r.run, value, ""); err != nil {
		r.k.t.Fatalf("workflowtest: %v", err)
	}
	r.k.Settle()
}

// Call sends a request, settles, and returns the answer, whatever crashes meanwhile. The test fails
// if the run waits for something else before it answers. [workflow.Update.Call] alone would wait
// forever, since runs execute only while the kit settles.
func Call[Out, Req, Ans any](r *Run[Out], u *workflow.Update[Req, Ans], req Req) (Ans, error) {
	k, t := r.k, r.k.t
	t.Helper()
	key := pawl.NewID(k.Now()).String()
	err := u.Send(t.Context(), k.engine, r.run, req, key)
	k.Settle()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	var ans Ans
	if err == nil {
		ans, err = u.Call(ctx, k.engine, r.run, req, key)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("workflowtest: the run has not answered: %s", describe(r.Info()))
	}
	return ans, err
}

// answerTime is how long Call waits for an answer once all runs wait.
const answerTime = time.Second

// Run returns the ID of the run.
func (r *Run[Out]) Run() pawl.ID { return r.run }

// ID returns the ID given by the starter.
func (r *Run[Out]) ID() string { return r.id }

// Info returns the state of the run.
func (r *Run[Out]) Info() workflow.Info {
	r.k.t.Helper()
	info, err := r.k.engine.Info(r.k.t.Context(), r.run)
	if err != nil {
		r.k.t.Fatalf("workflowtest: %v", err)
	}
	return info
}

// Result moves the clock from one deadline to the next until the run has ended, and returns the result
// of its function. The test fails if the run waits for something other than time.
func (r *Run[Out]) Result() (Out, error) {
	t := r.k.t
	t.Helper()
	r.k.Settle()
	for skips := 0; !r.Info().Status.Ended(); skips++ {
		if skips == maxSkips {
			t.Fatalf("workflowtest: the run has not ended after %d deadlines: %s", skips, describe(r.Info()))
		}
		r.k.Skip()
	}
	h, err := r.find()
	if err != nil {
		t.Fatalf("workflowtest: %v", err)
	}
	return h.Result(t.Context())
}
