package sqlite

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"maps"
	"os"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// sqlCounts counts the jobs of each line by their places, along the indexes. It also returns since
// when the first ready job is ready.
const sqlCounts = `SELECT line, 2, count(*), min(since) FROM pawl_job WHERE place = 2 GROUP BY line
UNION ALL SELECT line, 1, count(*), 0 FROM pawl_job WHERE place = 1 GROUP BY line
UNION ALL SELECT line, 3, count(*), 0 FROM pawl_job WHERE place = 3 GROUP BY line
UNION ALL SELECT line, 4, count(*), 0 FROM pawl_job WHERE place = 4 GROUP BY line
UNION ALL SELECT line, 5, count(*), 0 FROM pawl_job WHERE place = 5 GROUP BY line
UNION ALL SELECT line, 6, count(*), 0 FROM pawl_job WHERE place = 6 GROUP BY line`

// Stats returns how many jobs each queue has in each state. It counts rows of indexes, so its time
// grows with the number of jobs.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	err = q.look(ctx, func(c conn) error {
		ls, err := readLines(c)
		if err != nil {
			return err
		}
		rows := make(map[*line]*pawl.QueueStats)
		for _, l := range ls.queues {
			rows[l] = &pawl.QueueStats{Name: l.name, Paused: l.paused}
		}
		err = c.query(sqlCounts, func(v []sqldriver.Value) error {
			name, known := ls.names[number(v[0])]
			if !known {
				return nil
			}
			row, state := rows[name.queue], stateOf(number(v[1]))
			*driver.CountOf(&row.Counts, state) += int(number(v[2]))
			if number(v[1]) == placeWaiting {
				row.Blocked += int(number(v[2]))
				return nil
			}
			if since := timeOf(number(v[3])); state == pawl.Ready && (row.Oldest.IsZero() || since.Before(row.Oldest)) {
				row.Oldest = since
			}
			return nil
		})
		stats.Queues = nil
		for _, l := range slices.SortedFunc(maps.Values(ls.queues), func(a, b *line) int { return cmp.Compare(a.id, b.id) }) {
			stats.Queues = append(stats.Queues, *rows[l])
		}
		return err
	})
	if err != nil {
		return pawl.Stats{}, err
	}
	stats.Storage = pawl.Storage{Path: q.file, Format: format, Free: -1}
	if found, err := os.Stat(q.file); err == nil {
		stats.Size = found.Size()
	}
	return stats, nil
}
