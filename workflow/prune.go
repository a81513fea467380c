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
// runs are gone. Progress may be nil. If Prune fails midway, the counted runs are gone.
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

// atOnce is the removal time of runs chosen by Prune: before all others.
var atOnce = time.Unix(0, math.MinInt64)

// prune is the mutation that removes ended runs. It sets their removal time to atOnce, and
// removes runs with that time. If a mutation leaves some, the next one or any sweep at a start
// removes them.
type prune struct {
	before time.Time
	runs   []pawl.ID

	due  map[pawl.ID]*runRow
	done int  // runs that are gone
	more bool // there are more
}

func (p *prune) chooses(row *runRow) bool {
	return row != nil && !row.open() && time.Unix(0, row.Ended).Before(p.before)
}

// Check finds which of the runs still exist.
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
