package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Queue is a job queue in a PostgreSQL database. It implements [pawl.Queue]; its methods may be
// called from any goroutine.
type Queue struct {
	opts    Options
	pool    *pgxpool.Pool
	ownPool bool // Close closes it
	intake  intake
	synced  bool          // the server syncs what it commits
	done    chan struct{} // closed when the scheduler has ended
	agenda  atomic.Pointer[agenda]
	texts   sync.Map // the statements for the schema, by their constants

	scheduler // belongs to the goroutine of the scheduler
}

var _ pawl.Queue = (*Queue)(nil)

// Open connects to the server that a connection string names, such as
// "postgres://app@db/app?sslmode=verify-full", creates the tables if the schema has none, and
// returns the queue in it. The caller closes it.
//
// Errors: [pawl.ErrInvalid] for a bad option or connection string, [ErrUnavailable],
// [ErrPermission], [ErrReadOnly], [ErrOlderFormat], [pawl.ErrNewerFormat]. No error contains a
// password.
func Open(ctx context.Context, url string, opts *Options) (*Queue, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", &pawl.InvalidError{Field: "connection string", Reason: err.Error()})
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", explain(err))
	}
	q, err := Over(ctx, pool, opts)
	if err != nil {
		pool.Close()
		return nil, err
	}
	q.ownPool = true
	return q, nil
}

// Over is [Open] for a pool that the app has. The queue takes one connection for as long as it is
// open, and others for inspection. The app closes the pool after the queue.
func Over(ctx context.Context, pool *pgxpool.Pool, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err == nil {
		err = migrate(ctx, pool, o.Schema)
	}
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", explain(err))
	}
	q := &Queue{opts: o, pool: pool, done: make(chan struct{})}
	q.intake.signal = make(chan struct{}, 1)
	q.scheduler = newScheduler(q)
	err = pool.QueryRow(ctx, sqlSynced).Scan(&q.synced)
	if err == nil {
		err = q.recoverOwner(ctx)
	}
	if err != nil {
		q.disconnect()
		return nil, fmt.Errorf("open queue: %w", explain(err))
	}
	go q.schedule()
	return q, nil
}

// Abilities implements [driver.Able]. A server that commits without a sync, by
// synchronous_commit or fsync, has no [pawl.Synced].
func (q *Queue) Abilities() pawl.Ability {
	all := driver.Settings | pawl.Shared
	if q.synced {
		all |= pawl.Synced
	}
	return all
}

// Close stops the queue. Calls that it has accepted get their answers, fetches that wait get
// [pawl.ErrClosed], and so does every later call. Leases that are still out end as those of a
// process that crashed. When Close returns nothing of the queue runs.
func (q *Queue) Close() error {
	q.intake.close()
	<-q.done
	if q.ownPool {
		q.pool.Close()
	}
	return nil
}

// sql returns a statement for the schema of the queue.
func (q *Queue) sql(statement string) string {
	text, ok := q.texts.Load(statement)
	if !ok {
		text, _ = q.texts.LoadOrStore(statement, sqlIn(q.opts.Schema, statement))
	}
	return text.(string)
}

// connect makes the connection of the scheduler and the row of the process, unless they are there.
func (q *Queue) connect(ctx context.Context) error {
	if q.conn != nil {
		return nil
	}
	conn, err := q.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	q.conn = conn.Hijack()
	return nil
}

// register makes a row of the process. The leases of an earlier row are lost.
func (q *Queue) register(ctx context.Context) error {
	id := rand.Int64()
	owner := q.opts.Owner
	if owner == "" {
		owner = fmt.Sprintf("%016x", id)
	}
	_, err := q.conn.Exec(ctx, q.sql(sqlRegister), id, []byte(owner), q.clock(), int64(q.opts.Lease))
	if err != nil {
		return err
	}
	q.process, q.commits = id, 0
	return nil
}

// disconnect closes the connection of the scheduler.
func (q *Queue) disconnect() {
	if q.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = q.conn.Close(ctx) // the server notices by itself
	q.conn = nil
}

// closeTimeout limits how long a good-bye to the server takes.
const closeTimeout = time.Second

// clock returns the parameter for the time: NULL for the clock of the server.
func (q *Queue) clock() *int64 {
	if q.opts.Now == nil {
		return nil
	}
	now := nanos(q.opts.Now())
	return &now
}

// recoverOwner takes back the leases of an earlier process of the same owner.
func (q *Queue) recoverOwner(ctx context.Context) error {
	if err := q.connect(ctx); err != nil {
		return err
	}
	if err := q.register(ctx); err != nil {
		return err
	}
	q.reapOwner = q.opts.Owner
	for {
		t, err := q.attempt(ctx, nil)
		if err == nil {
			t.conclude(nil)
		}
		if !isRace(err) {
			return err
		}
	}
}

// nanos returns a time in Unix nanoseconds, saturated.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(earliest):
		return earliest.UnixNano()
	case t.After(latest):
		return latest.UnixNano()
	}
	return t.UnixNano()
}

// The times that Unix nanoseconds can hold.
var (
	earliest = time.Unix(0, -1<<63)
	latest   = time.Unix(0, 1<<63-1)
)

func timeOf(nanos int64) time.Time { return time.Unix(0, nanos) }
