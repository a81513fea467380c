package workflow

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Handle refers to one run.
type Handle[Out any] struct {
	engine *Engine
	run    pawl.ID
	flow   string
	id     string
	decode func([]byte, any) error
}

// Run returns the run, which is also the ID of its job. Operators' methods take it. See
// [Engine].
func (h *Handle[Out]) Run() pawl.ID { return h.run }

// ID returns the ID given by the starter.
func (h *Handle[Out]) ID() string { return h.id }

// Info reads the state of the run.
func (h *Handle[Out]) Info(ctx context.Context) (Info, error) { return h.engine.Info(ctx, h.run) }

// Result waits until the run ends and returns the result of its function. It also waits while
// nobody works on the queue, and while the run is blocked, paused or dead, so use a ctx that
// ends.
//
// It returns a [*RunError] if the run failed, was cancelled or terminated; [ErrNotFound] if its
// retention is over; the error of ctx; or [pawl.ErrClosed].
func (h *Handle[Out]) Result(ctx context.Context) (out Out, err error) {
	look := h.engine.hub.polling()
	for {
		ended, leave := h.engine.hub.await(h.run)
		row, output, err := h.read(ctx)
		switch {
		case err != nil:
			leave()
			return out, fmt.Errorf("result of workflow %s %q: %w", h.flow, h.id, err)
		case row.Status == Done:
			leave()
			if err := h.decode(output, &out); err != nil {
				return out, fmt.Errorf("result of workflow %s %q: %w", h.flow, h.id, err)
			}
			return out, nil
		case !row.open():
			leave()
			return out, &RunError{Flow: h.flow, ID: h.id, Run: h.run, Status: row.Status, Text: row.Error, chain: row.Chain}
		}
		select {
		case <-ended:
		case <-look.next():
			leave()
		case <-h.engine.queue.Done():
			leave()
			return out, fmt.Errorf("result of workflow %s %q: %w", h.flow, h.id, pawl.ErrClosed)
		case <-ctx.Done():
			leave()
			return out, fmt.Errorf("result of workflow %s %q: it has not ended, and its Info says why: %w", h.flow, h.id, context.Cause(ctx))
		}
	}
}

func (h *Handle[Out]) read(ctx context.Context) (row *runRow, output []byte, err error) {
	err = h.engine.source.ViewRows(ctx, func(tx driver.Reader) error {
		r := rowsOf(tx)
		if row, err = r.mustRun(h.run); err != nil {
			return err
		}
		if row.Status == Done {
			output, err = r.blob(h.run, outputSeq)
		}
		return err
	})
	return row, output, err
}

// Cancel asks the run to end. See [Engine.Cancel].
func (h *Handle[Out]) Cancel(ctx context.Context, reason string) error {
	return h.engine.Cancel(ctx, h.run, reason)
}
