package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Queue is a job queue in a PostgreSQL database. It implements [pawl.Queue]. Its methods are safe
// for concurrent use.
type Queue struct {
	opts    Options
	pool    *pgxpool.Pool
	ownPool bool // Close closes it
	intake  *core.Intake[*call, *fetch]
	synced  bool          // the server syncs what it commits
	done    chan struct{} // closed when the scheduler has ended
	agenda  atomic.Pointer[agenda]
	texts   sync.Map // the statements for the schema, by their constants
	updates sync.Map // what the running calls of Update have done, by transaction
	tables  sync.Map // the numbers of tables of other packages, by *driver.Table

	reporter driver.Reporter
	waiters  driver.Waiters
	acked    ackedLeases
	lines    *lines
	bounds   *atomic.Pointer[bounds] // bounds on waiting jobs, as last read
	bell     *doorbell               // nil if the queue does not listen

	scheduler // only for the goroutine of the scheduler
}

var _ pawl.Queue = (*Queue)(nil)

// Open connects to the server that a connection string names, such as
// "postgres://app@db/app?sslmode=verify-full", creates the tables if the schema has none, and
// returns the queue in it. The caller closes it. The parameter schema names the schema, as
// [Options.Schema] does.
//
// Errors: [pawl.ErrInvalid] for a bad option or connection string, [ErrUnavailable],
// [ErrPermission], [ErrReadOnly], [ErrNotQueue], [ErrOlderFormat], [pawl.ErrNewerFormat]. No error contains a
// password.
func Open(ctx context.Context, url string, opts *Options) (*Queue, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", &pawl.InvalidError{Field: "connection string", Reason: parseReason(err)})
	}
	if strings.Contains(config.ConnConfig.Database, "@") { // then it contains half of the password
		return nil, fmt.Errorf("open queue: %w", &pawl.InvalidError{Field: "connection string",
			Reason: "the name of the database has an @; write a slash in the password as %2F"})
	}
	if opts, err = schemaOf(config, opts); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
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

// Over is [Open] for an existing pool of the app. The queue opens two more connections with the settings of the pool,
// and takes connections from the pool for inspection and [Queue.Update]. The app closes the pool after the queue.
func Over(ctx context.Context, pool *pgxpool.Pool, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err == nil {
		err = migrate(ctx, pool, o.Schema, o.Existing)
	}
	if err == nil {
		err = declareLimits(ctx, pool, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", explain(err))
	}
	q := &Queue{opts: o, pool: pool, done: make(chan struct{}), lines: new(lines), bounds: new(atomic.Pointer[bounds]),
		reporter: driver.Reporter{Logger: o.Logger, OnEvent: o.OnEvent, Collector: o.Collector, MaxCrashes: o.MaxCrashes},
	}
	q.intake = newIntake()
	q.scheduler.init()
	err = pool.QueryRow(ctx, sqlSynced).Scan(&q.synced)
	if err == nil {
		err = q.recoverOwner(ctx)
	}
	if err != nil {
		q.disconnect()
		return nil, fmt.Errorf("open queue: %w", explain(err))
	}
	q.bell = openDoorbell(q)
	go q.schedule()
	return q, nil
}

// abilities are the abilities on any server.
const abilities = driver.Settings | pawl.Shared | pawl.Results | pawl.Groups | pawl.Cursors | pawl.RunNotes | pawl.OrderedKeys | pawl.Prerequisites | pawl.FairKeys | pawl.BoundedQueues | pawl.SharedPools

// Abilities implements [driver.Able]. The queue has [pawl.Synced] unless the server's settings
// synchronous_commit or fsync let it commit without a sync.
func (q *Queue) Abilities() pawl.Ability {
	all := abilities
	if q.synced {
		all |= pawl.Synced
	}
	return all
}

// Close stops the queue. Accepted calls get their answers. Waiting fetches and all later calls
// return [pawl.ErrClosed]. Leases that have not ended count as crashes. When Close returns, no
// goroutine of the queue runs.
func (q *Queue) Close() error {
	q.intake.Close()
	<-q.done
	q.bell.close()
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

// connect makes the connection of the scheduler unless it is there.
func (q *Queue) connect(ctx context.Context) error {
	if q.conn != nil && !q.conn.IsClosed() {
		return nil
	}
	q.disconnect()
	conn, err := q.dial(ctx)
	if err != nil {
		return err
	}
	q.conn = conn
	if _, err := q.conn.Exec(ctx, q.opts.session()); err != nil {
		q.disconnect()
		return err
	}
	return nil
}

// dial connects with the settings of the pool, but outside of the pool: transactions of the app may use all
// connections of the pool and wait for the scheduler.
func (q *Queue) dial(ctx context.Context) (*pgx.Conn, error) {
	config := q.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil && config.AfterConnect != nil {
		if err = config.AfterConnect(ctx, conn); err != nil {
			_ = conn.Close(ctx)
		}
	}
	return conn, err
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
	ended := q.conn.PgConn().CleanupDone()
	q.cleanups.Go(func() { <-ended })
	q.conn = nil
}

// releaseLast releases the leases that no caller received. Otherwise another process would take them back later, and
// count crashes.
func (q *Queue) releaseLast() {
	if len(q.doubtful) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	q.resume = time.Time{}
	t, err := q.attempt(ctx, nil)
	if err != nil {
		q.opts.Logger.Warn("jobs that nobody got stay leased; the process that takes them back counts crashes", "jobs", len(q.doubtful), "error", err.Error())
		return
	}
	t.conclude()
}

// leave removes the row of the process, unless it has leases.
func (q *Queue) leave() {
	if q.conn == nil || q.conn.IsClosed() || len(q.held)+len(q.doubtful) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, c := range []struct {
		statement string
		ids       []int64
	}{{sqlUnclaim, q.unclaimed}, {sqlRemoveEnded, []int64{q.process}}} {
		if _, err := q.conn.Exec(ctx, q.sql(c.statement), c.ids); err != nil {
			return // another process removes the row when its time is over
		}
	}
}

// These limit how long the disconnect from the server takes.
const (
	closeTimeout   = time.Second
	releaseTimeout = 3 * time.Second
)

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
	until := time.Now().Add(q.opts.Timeout)
	for try := 0; ; try++ {
		t, err := q.attempt(ctx, nil)
		if err == nil {
			t.conclude()
		}
		switch {
		case err == nil && q.reapOwner == "":
			return nil
		case err == nil: // there are more leases to take back
		case !isRace(err) && !isLocked(err) || !q.pause(try, until):
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
