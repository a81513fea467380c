package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

const (
	sqlPaused         = `SELECT paused FROM pawl_queue WHERE name = ?`
	sqlHolderOfEffect = `SELECT id FROM pawl_job INDEXED BY pawl_job_leased WHERE place = 4 AND effect = ? LIMIT 1`
)

// Why returns what keeps a job from running now. It returns [pawl.ErrNotFound] if the job is not in
// the queue.
func (q *Queue) Why(ctx context.Context, id pawl.ID) (all []pawl.Obstacle, err error) {
	e, err := q.Job(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for what keeps a job from running: %w", err)
	}
	f := driver.Facts{Job: e, Queue: pawl.QueueStats{Name: e.Queue}}
	err = q.view(ctx, func(c conn) (err error) {
		paused := int64(0)
		if err := c.query(sqlPaused, one(&paused), []byte(e.Queue)); err != nil {
			return err
		}
		f.Queue.Paused = paused != 0
		if name := core.EffectName(e); name != "" && e.State == pawl.Ready {
			if err := c.query(sqlHolderOfEffect, func(v []sqldriver.Value) error {
				copy(f.Holder[:], bytesOf(v[0]))
				return nil
			}, []byte(name)); err != nil {
				return err
			}
		}
		f.Prerequisites, err = readNeeded(c, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.Obstacles(), nil
}

// Key returns [pawl.ErrNotFound]: the queue has no limits per key.
func (q *Queue) Key(_ context.Context, queue, key string) (pawl.KeyStats, error) {
	return pawl.KeyStats{}, driver.NoKey(queue, key)
}

// Keys returns no keys: the queue has no limits per key.
func (q *Queue) Keys(_ context.Context, _, after string, max int) ([]pawl.KeyStats, error) {
	return nil, driver.CheckKeys(after, max)
}
