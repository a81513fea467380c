package workflow

import (
	"context"
	"fmt"
	"time"

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

	started moment // the moment before the start; 0 if the handle is not from the start
}

// Run returns the run, which is also the ID of its job. The methods of [Engine] take it.
func (h *Handle[Out]) Run() pawl.ID { return h.run }

// ID returns the ID given by the starter.
func (h *Handle[Out]) ID() string { return h.id }

// Info reads the state of the run.
func (h *Handle[Out]) Info(ctx context.Context) (Info, error) { return h.engine.Info(ctx, h.run) }

// Result waits until the run ends and returns the result of its function. It also waits while no
// worker runs, and while the run is blocked or paused, so use a ctx that ends.
//
// It returns a [*RunError] if the run failed, was cancelled, or was terminated. Once the job of the run is dead or
// gone, it returns a RunError with the status [Dead]; a handle of [Flow.Start] may notice this a second later. A dead
// run continues only after [Engine.Resume]. Other errors are [ErrNotFound] if its retention is over; the error of ctx,
// with what the run waits for; and [pawl.ErrClosed].
func (h *Handle[Out]) Result(ctx context.Context) (out Out, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	long := time.NewTimer(deathWait) // most runs end before, and nobody waits for their job
	defer long.Stop()
	var gone <-chan struct{}                               // closed at the end of the job
	look, looks, check := h.engine.hub.polling(), 0, false // check: whether to look if the job is dead
	var end ending
	for first := true; ; first = false {
		ended, open, leave := h.engine.hub.await(h.run, h.started)
		if first && !open {
			long.Stop()
			gone = h.engine.jobEnds(ctx, h.run)
		}
		row, output := end.row, end.output
		switch {
		case row != nil:
		case first && open:
			row = &runRow{Status: Running}
		default:
			row, output, err = h.read(ctx)
		}
		switch {
		case err != nil:
			leave()
			return out, fmt.Errorf("result of workflow %s %q: %w", h.flow, h.id, err)
		case row.Status == Done:
			leave()
			if output, err = h.engine.fromStored(output); err == nil {
				err = h.decode(output, &out)
			}
			if err != nil {
				return out, fmt.Errorf("result of workflow %s %q: %w", h.flow, h.id, err)
			}
			return out, nil
		case !row.open():
			leave()
			return out, &RunError{Flow: h.flow, ID: h.id, Run: h.run, Status: row.Status, Text: row.Error, chain: row.Chain}
		case check:
			if info, err := h.engine.look(ctx, h.run, row); err == nil && info.Status == Dead {
				leave()
				return out, &RunError{Flow: h.flow, ID: h.id, Run: h.run, Status: Dead, Text: info.Error}
			}
			if gone == nil { // the run is active again
				gone = h.engine.jobEnds(ctx, h.run)
			}
			check = false
		}
		select {
		case end = <-ended:
		case <-look.next():
			leave()
			looks++
			check = looks%deathLook == 1
		case <-long.C:
			leave()
			gone = h.engine.jobEnds(ctx, h.run)
		case <-gone:
			leave()
			gone, check = nil, true
		case <-h.engine.queue.Done():
			leave()
			return out, fmt.Errorf("result of workflow %s %q: %w", h.flow, h.id, pawl.ErrClosed)
		case <-ctx.Done():
			leave()
			info, standing := h.engine.standing(h.run)
			if info.Status == Dead {
				return out, &RunError{Flow: h.flow, ID: h.id, Run: h.run, Status: Dead, Text: info.Error}
			}
			return out, fmt.Errorf("result of workflow %s %q: %s: %w", h.flow, h.id, standing, context.Cause(ctx))
		}
	}
}

// jobEnds returns a channel that is closed once the job of a run is dead, completed or gone, or ctx ends. It returns
// nil for a queue that cannot wait for that, and for a shared queue, which the waiter polls.
func (e *Engine) jobEnds(ctx context.Context, run pawl.ID) <-chan struct{} {
	q, ok := e.queue.(pawl.Awaiter)
	if !ok || e.hub.shared {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = q.Await(ctx, run)
	}()
	return ended
}

// standing returns the state of a run that has not ended, and a text that says what it waits for.
func (e *Engine) standing(run pawl.ID) (info Info, text string) {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	info, err := e.Info(ctx, run)
	switch {
	case err != nil:
		return info, "it has not ended"
	case info.Error != "":
		return info, fmt.Sprintf("it is %s: %s", info.Status, info.Error)
	case info.Status == Running:
		if job, err := e.queue.Job(ctx, run); err == nil && job.State == pawl.Ready {
			return info, "it is ready, and waits for a free worker with its flow"
		}
	}
	text = fmt.Sprintf("it is %s", info.Status)
	if len(info.Waits) > 0 {
		text += fmt.Sprintf(" for %q", info.Waits)
	}
	if !info.Due.IsZero() {
		text += " until " + info.Due.UTC().Format(time.RFC3339)
	}
	return info, text
}

func (h *Handle[Out]) read(ctx context.Context) (row *runRow, output []byte, err error) {
	var n driver.Needs
	n.Read(tableRuns, h.run[:])
	n.Read(tableBlobs, seqKey(h.run, outputSeq))
	err = h.engine.source.ViewRows(ctx, func(tx driver.Reader) error {
		if err := driver.ReadAhead(tx, &n); err != nil {
			return err
		}
		r := rowsOf(tx)
		if row, err = r.mustRun(h.run); err != nil {
			return err
		}
		if row.Status == Done {
			output, err = r.output(h.run, row)
		}
		return err
	})
	return row, output, err
}

// Cancel asks the run to end. See [Engine.Cancel].
func (h *Handle[Out]) Cancel(ctx context.Context, reason string) error {
	return h.engine.Cancel(ctx, h.run, reason)
}
