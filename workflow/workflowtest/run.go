package workflowtest

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Run is one run of a flow. It outlives crashes, which a [workflow.Handle] does not.
type Run[Out any] struct {
	k    *Kit
	run  pawl.ID
	id   string
	find func() (*workflow.Handle[Out], error)
}

// Start starts a run, and settles: it waits or has ended then. For a start without that
// there is that of the flow, with [Kit.Engine].
func Start[In, Out any](k *Kit, f *workflow.Flow[In, Out], id string, in In) *Run[Out] {
	k.t.Helper()
	h, err := f.Start(k.t.Context(), k.engine, id, in)
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	k.Settle()
	return &Run[Out]{k: k, run: h.Run(), id: id, find: func() (*workflow.Handle[Out], error) {
		return f.Handle(k.t.Context(), k.engine, id)
	}}
}

// Of is a run that was started otherwise: by the program, or by another run.
func Of[In, Out any](k *Kit, f *workflow.Flow[In, Out], id string) *Run[Out] {
	k.t.Helper()
	find := func() (*workflow.Handle[Out], error) { return f.Handle(k.t.Context(), k.engine, id) }
	h, err := find()
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	return &Run[Out]{k: k, run: h.Run(), id: id, find: find}
}

// Send sends a signal, and settles.
func Send[Out, T any](r *Run[Out], s *workflow.Signal[T], value T) {
	r.k.t.Helper()
	if err := s.Send(r.k.t.Context(), r.k.engine, r.run, value, ""); err != nil {
		r.k.t.Fatalf("workflowtest: %v", err)
	}
	r.k.Settle()
}

// Run is the ID of the run.
func (r *Run[Out]) Run() pawl.ID { return r.run }

// ID is the ID that its starter gave it.
func (r *Run[Out]) ID() string { return r.id }

// Info is where the run stands.
func (r *Run[Out]) Info() workflow.Info {
	r.k.t.Helper()
	info, err := r.k.engine.Info(r.k.t.Context(), r.run)
	if err != nil {
		r.k.t.Fatalf("workflowtest: %v", err)
	}
	return info
}

// Result moves the clock from one deadline to the next until the run has ended, and returns
// what its function did. A run that waits for something else than time, so that it does not
// end by itself, fails the test.
func (r *Run[Out]) Result() (Out, error) {
	t := r.k.t
	t.Helper()
	r.k.Settle()
	for skips := 0; !r.Info().Status.Ended(); skips++ {
		if skips == mostSkips {
			t.Fatalf("workflowtest: after %d deadlines the run has not ended: %s", skips, describe(r.Info()))
		}
		r.k.Skip()
	}
	h, err := r.find()
	if err != nil {
		t.Fatalf("workflowtest: %v", err)
	}
	return h.Result(t.Context())
}
