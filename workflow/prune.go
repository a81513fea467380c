package workflow

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Prune removes the runs that ended before a time, whatever their retention, those too that
// are kept for ever. It works in small portions, and tells progress after each how many runs
// are gone so far; progress may be nil. When it fails midway the runs counted are gone.
//
// The file does not become smaller; what is freed is used again.
func (e *Engine) Prune(ctx context.Context, before time.Time, progress func(done int)) (done int, err error) {
	select {
	case e.hub.sweeping <- struct{}{}: // or another would remove what is counted here
		defer func() { <-e.hub.sweeping }()
	case <-ctx.Done():
		return 0, fmt.Errorf("prune: %w", context.Cause(ctx))
	}
	for w := (walk{table: tableRuns}); !w.end; {
		p := &prune{before: before}
		_, err := w.step(ctx, e.source, func(r rows, key, _ []byte, _ error) bool {
			if len(key) == len(pawl.ID{}) {
				if row, err := r.run(pawl.ID(key)); err == nil && p.chooses(row) {
					p.runs = append(p.runs, pawl.ID(key))
				}
			}
			return len(p.runs) < portion
		})
		if err != nil {
			return done, fmt.Errorf("prune: %w", err)
		}
		for more := len(p.runs) > 0 || w.end; more; more = p.more {
			if err := e.queue.Mutate(ctx, p, len(p.runs)*requestBytes); err != nil {
				return done, fmt.Errorf("prune: %w", err)
			}
			done += p.done
			if progress != nil && p.done > 0 {
				progress(done)
			}
		}
	}
	return done, nil
}

// atOnce is when those are to be removed that Prune has chosen: before all others.
var atOnce = time.Unix(0, math.MinInt64)

// prune is the mutation that removes runs that have ended. It gives them the time at which to
// remove them anew, and removes what has that time; so what one does not get done the next
// does, or any start.
type prune struct {
	before time.Time
	runs   []pawl.ID

	due  map[pawl.ID]*runRow
	done int  // runs that are gone
	more bool // are left
}

func (p *prune) chooses(row *runRow) bool {
	return row != nil && !row.open() && time.Unix(0, row.Ended).Before(p.before)
}

// Check looks which of the runs are still there.
func (p *prune) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	p.due = make(map[pawl.ID]*runRow)
	for _, run := range p.runs {
		if row, err := r.run(run); err == nil && p.chooses(row) {
			p.due[run] = row
		}
	}
	return nil
}

// Apply removes a portion.
func (p *prune) Apply(tx driver.Writer) (err error) {
	r := rowsTo(tx)
	for run, row := range p.due {
		if until := row.keptUntil(); !until.IsZero() {
			if err := r.delete(tableEnded, endedKey(until, run)); err != nil {
				return err
			}
		}
		if err := r.put(tableEnded, endedKey(atOnce, run), nil); err != nil {
			return err
		}
	}
	s := sweep{rows: r, left: portionQuota()}
	err = s.until(atOnce)
	p.done, p.more = s.runs, s.full
	return err
}
