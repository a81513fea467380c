package workflow

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Prune removes the runs that ended before a time, regardless of their retention, including
// runs kept forever. It works in small portions and reports to progress after each how many
// runs are gone. Progress may be nil. If Prune fails midway, the runs that it counted are gone.
//
// The file does not shrink, but reuses the freed pages.
func (e *Engine) Prune(ctx context.Context, before time.Time, progress func(done int)) (done int, err error) {
	select {
	case e.hub.sweeping <- struct{}{}: // otherwise another sweep would remove what is counted here
		defer func() { <-e.hub.sweeping }()
	case <-ctx.Done():
		return 0, fmt.Errorf("prune: %w", context.Cause(ctx))
	}
	for w := (walk{table: tableRuns}); !w.end; {
		m := &toRemove{before: before}
		_, err := w.step(ctx, e.source, func(r rows, key, _ []byte, _ error) bool {
			if len(key) == len(pawl.ID{}) {
				if row, err := r.run(pawl.ID(key)); err == nil && m.chooses(row) {
					m.runs, m.rows = append(m.runs, pawl.ID(key)), append(m.rows, row)
				}
			}
			return len(m.runs) < portion
		})
		if err == nil && len(m.runs) > 0 {
			err = e.queue.Mutate(ctx, m, len(m.runs)*requestBytes)
		}
		for more := len(m.runs) > 0 || w.end; more && err == nil; {
			var r *removal
			if r, err = e.portionUntil(atOnce); err != nil || len(r.due) == 0 {
				break
			}
			if err = e.queue.Mutate(ctx, r, requestBytes); err != nil {
				break
			}
			if done += r.runs; progress != nil && r.runs > 0 {
				progress(done)
			}
			more = r.more
		}
		if err != nil {
			return done, fmt.Errorf("prune: %w", err)
		}
	}
	return done, nil
}

// atOnce is the removal time of runs chosen by Prune: before all others.
var atOnce = time.Unix(0, math.MinInt64)

// toRemove is the mutation that sets the removal time of ended runs to atOnce. If Prune does not remove
// all of them, the sweep at the next start does.
type toRemove struct {
	before time.Time
	runs   []pawl.ID
	rows   []*runRow // one per run; nil for a run that must no longer be removed
}

func (m *toRemove) chooses(row *runRow) bool {
	return row != nil && !row.open() && time.Unix(0, row.Ended).Before(m.before)
}

// Declare declares the runs with their rows in ended.
func (m *toRemove) Declare(n *driver.Needs) {
	for i, run := range m.runs {
		n.Own(tableRuns, run[:])
		n.Row(tableEnded, endedKey(atOnce, run))
		if row := m.rows[i]; row != nil && !row.keptUntil().IsZero() {
			n.Row(tableEnded, endedKey(row.keptUntil(), run))
		}
	}
}

// Check finds which of the runs still exist.
func (m *toRemove) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	for i, run := range m.runs {
		m.rows[i] = nil
		if row, err := r.run(run); err == nil && m.chooses(row) {
			m.rows[i] = row
		}
	}
	return nil
}

// Apply moves the removal time of the runs.
func (m *toRemove) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	for i, run := range m.runs {
		row := m.rows[i]
		if row == nil {
			continue
		}
		if until := row.keptUntil(); !until.IsZero() {
			if err := r.delete(tableEnded, endedKey(until, run)); err != nil {
				return err
			}
		}
		if err := r.put(tableEnded, endedKey(atOnce, run), nil); err != nil {
			return err
		}
	}
	return nil
}
