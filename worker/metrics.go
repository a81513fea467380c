package worker

import (
	"context"

	"github.com/gopawl/pawl/metrics"
)

var _ metrics.Producer = (*Worker)(nil)

// Families returns pawl_worker_slots{state}, a gauge for [metrics.Handler]: slots with a handler at work (busy),
// with a handler that ignores the end of its context (stuck, see [Worker.Stuck]), and without a handler
// (idle). A worker that does not fetch has no idle slots.
func (w *Worker) Families(context.Context) ([]metrics.Family, error) {
	busy, stuck := w.running.count()
	idle := 0
	if w.Running() {
		idle = max(0, w.opts.Concurrency-busy-stuck)
	}
	slots := metrics.NewFamily("pawl_worker_slots", "gauge", "Slots of the workers of this process by state.", "state")
	slots.Add(float64(busy), "busy")
	slots.Add(float64(idle), "idle")
	slots.Add(float64(stuck), "stuck")
	return []metrics.Family{slots}, nil
}
