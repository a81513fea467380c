package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// endurance is what a queue on PostgreSQL must bear for long. It writes no report, because it takes half an
// hour. Its figures stand in postgres_notes.md, which is part of the report of [onPostgres].
func endurance() subject {
	return subject{
		systems: []system.System{system.PawlPostgres()},
		cases: []benchCase{
			{
				name:  "finished",
				about: "64 producers and 16 no-op workers beside jobs that are retained, and while a transaction keeps dead rows",
				peers: beside,
				once:  true,
			},
			{
				name:  "vacuum",
				about: "a steady rate of jobs, and what autovacuum leaves behind",
				peers: vacuumed,
				once:  true,
			},
		},
	}
}

// parts is how many parts of t.endurance get figures of their own.
const parts = 10

// beside has two queues of one server take turns: an empty one, and one with ten times t.million jobs that
// have succeeded and are retained. Then it measures the second one while a transaction with a snapshot is open.
func beside(t *trial, full system.Queue) error {
	empty, err := system.JoinPawlPostgres(t.ctx, t.server, "empty")
	if err != nil {
		return err
	}
	conn, err := system.ConnectPostgres(t.ctx, t.server)
	if err != nil {
		return errors.Join(err, empty.Close())
	}
	err = t.beside(conn, empty, full)
	return errors.Join(err, conn.Close(context.WithoutCancel(t.ctx)), empty.Close())
}

func (t *trial) beside(conn *pgx.Conn, empty, full system.Queue) error {
	if err := t.retain(conn, full, 10*t.million); err != nil {
		return err
	}
	turn := func(metric string, q system.Queue, length time.Duration) error {
		progress("finished: %s", metric)
		rate, err := t.steadyRate(q, length)
		t.report(metric, rate, perSecond)
		return err
	}
	minute := t.endurance / parts
	for range 3 {
		if err := errors.Join(turn("empty", empty, minute/3), turn("retained", full, minute/3)); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(t.ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pawl.meta"); err != nil {
		return err
	}
	if err := turn("retained-held", full, minute); err != nil {
		return err
	}
	_, err := conn.Exec(t.ctx, "COMMIT")
	return err
}

// retain has a queue complete a job that is retained, and copies its row, with other IDs, until there are n.
func (t *trial) retain(conn *pgx.Conn, q system.Queue, n int) error {
	options, ok := q.(interface {
		EnqueueWith(context.Context, [][]byte, ...pawl.Option) error
	})
	if !ok {
		return fmt.Errorf("%s retains no jobs", t.system.Name)
	}
	if err := options.EnqueueWith(t.ctx, [][]byte{small}, pawl.Retain(365*24*time.Hour)); err != nil {
		return err
	}
	if _, _, err := t.drain(q, workers, 1); err != nil {
		return err
	}
	progress("finished: storing %d rows", n)
	_, err := conn.Exec(t.ctx, `INSERT INTO pawl.job (id, seq, since, line, place, lane, prio, record, payload)
SELECT lpad(to_hex(n), 32, '0')::uuid, nextval('pawl.seq'), since + n, line, place, lane, prio, record, payload
FROM pawl.job, generate_series(2, $1::int4) AS n WHERE place = 4`, n)
	for _, command := range []string{"VACUUM ANALYZE pawl.job", "CHECKPOINT"} {
		if err == nil {
			_, err = conn.Exec(t.ctx, command)
		}
	}
	return err
}

// steadyRate is what steadily reports after so long.
func (t *trial) steadyRate(q system.Queue, length time.Duration) (float64, error) {
	part := trial{ctx: t.ctx, size: size{limit: length}}
	if err := steadily(&part, q); err != nil {
		return 0, err
	}
	return part.samples[0].value, nil
}

// paced stores jobs at a steady rate until ctx ends, and counts them. Each call stores those that are due, at most as
// many as bulk does.
func (t *trial) paced(ctx context.Context, q system.Queue, stored *atomic.Int64) error {
	batch := slices.Repeat([][]byte{small}, 1000)
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		due := min(int(time.Since(began).Seconds()*float64(t.pace))-int(stored.Load()), len(batch))
		if err := q.EnqueueAll(t.ctx, batch[:due]); err != nil {
			return err
		}
		stored.Add(int64(due))
	}
}

// looks is how often vacuumed looks at the table of jobs in each part.
const looks = 10

// vacuumed stores jobs at a steady rate, which workers of another process complete, and looks at the table of jobs
// meanwhile.
func vacuumed(t *trial, q system.Queue) error {
	conn, err := system.ConnectPostgres(t.ctx, t.server)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(t.ctx))
	work, err := t.start(roleWork, t.system.Name, t.server.Addr)
	if err != nil {
		return err
	}
	defer work.kill()
	if _, err := io.WriteString(work.stdin, "\n"); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	var stored atomic.Int64
	ended := make(chan error, 1)
	go func() { ended <- t.paced(ctx, q, &stored) }()
	began := time.Now()
	var before int64
	for i := range parts {
		var jobs, left, dead, most, bytes int64
		for look := range looks {
			end := began.Add(t.endurance * time.Duration(i*looks+look+1) / (parts * looks))
			if err := t.wait(time.Until(end)); err != nil {
				return err
			}
			err := conn.QueryRow(t.ctx, `SELECT (SELECT count(*) FROM pawl.job), n_dead_tup, pg_total_relation_size(relid)
FROM pg_stat_user_tables WHERE schemaname = 'pawl' AND relname = 'job'`).Scan(&left, &dead, &bytes)
			if err != nil {
				return err
			}
			jobs = stored.Load()
			most = max(most, dead)
		}
		part := fmt.Sprintf("part-%02d", i+1)
		t.rate(part, int(jobs-left-before), t.endurance/parts)
		t.report(part+"-left", float64(left), "jobs")
		t.report(part+"-dead", float64(most), "rows")
		t.report(part+"-table", report.MiB(bytes), mebibytes)
		before = jobs - left
	}
	stop()
	return <-ended
}
