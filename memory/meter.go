package memory

import (
	"context"

	"github.com/gopawl/pawl/driver"
)

// Throughput reports what happened to jobs in the last minutes, hours or days; see [driver.Throughput].
func (q *Queue) Throughput(ctx context.Context, query driver.ThroughputQuery) (t driver.Throughput, err error) {
	err = q.look(ctx, func() error {
		t, err = q.meter.Read(q.snapshot(), 0, q.opts.Now(), query)
		return err
	})
	return t, err
}

// storeCounts moves the counts of earlier minutes to rows, which bounds their number.
func (q *Queue) storeCounts() {
	if !q.meter.Due(q.moves.Now) {
		return
	}
	rs := q.snapshot()
	if q.meter.Store(rs, q.moves.Now, 0) == nil {
		q.tables = rs.tables
	}
	q.meter.Stored(true)
}
