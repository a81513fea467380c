package system

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"maragu.dev/goqite"
)

// goqitePoll is how often each worker looks into an idle queue. goqite has no wake-up, so
// this is its latency. It sets no lower limit; at 1 ms sixteen idle workers keep half a
// core busy, and none of the looks syncs.
const goqitePoll = time.Millisecond

// goqiteSchema makes what goqite v0.4.0 expects to find and leaves to its users to install:
// its columns with their defaults, the index by which it receives, and the trigger that
// every write of a job pays for.
const goqiteSchema = `
CREATE TABLE goqite (
	queue    TEXT    NOT NULL,
	id       TEXT    PRIMARY KEY DEFAULT ('m_' || lower(hex(randomblob(16)))),
	body     BLOB    NOT NULL,
	priority INTEGER NOT NULL DEFAULT 0,
	received INTEGER NOT NULL DEFAULT 0,
	created  TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	updated  TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	timeout  TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT;
CREATE INDEX by_order ON goqite (queue, priority DESC, created);
CREATE TRIGGER note_update AFTER UPDATE ON goqite BEGIN
	UPDATE goqite SET updated = strftime('%Y-%m-%dT%H:%M:%fZ') WHERE id = old.id;
END;`

type goqiteQueue struct {
	db    *sql.DB
	queue *goqite.Queue
}

func newGoqite(name string, j journal) System {
	return System{
		Name:       name,
		Durability: j.durability,
		Settings:   j.String() + ", go-sqlite3, 1 connection, Receive and Delete, poll " + goqitePoll.String(),
		Version:    moduleVersion("maragu.dev/goqite") + " (" + mattnVersion() + ")",
		Open: func(ctx context.Context, dir string, _ *Server) (Queue, error) {
			// The driver, the DSN and the single connection are those of the README.
			db, err := openMattn(dir, j)
			if err != nil {
				return nil, err
			}
			if _, err := db.ExecContext(ctx, goqiteSchema); err != nil {
				return nil, errors.Join(err, db.Close())
			}
			// A message that is not deleted within Timeout comes again. The default of 5 s
			// is for messages that are extended; it has no part in the speed.
			return &goqiteQueue{db, goqite.New(goqite.NewOpts{DB: db, Name: "jobs", Timeout: time.Minute})}, nil
		},
	}
}

func (q *goqiteQueue) Enqueue(ctx context.Context, payload []byte) error {
	return q.queue.Send(ctx, goqiteMessage(payload))
}

// EnqueueAll shares one transaction, which is all that goqite has for a batch.
func (q *goqiteQueue) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, payload := range payloads {
		if err := q.queue.SendTx(ctx, tx, goqiteMessage(payload)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// goqiteMessage makes a message, whose body must not be NULL, as nil would be.
func goqiteMessage(payload []byte) goqite.Message {
	if payload == nil {
		payload = []byte{}
	}
	return goqite.Message{Body: payload}
}

// Work receives and deletes in each worker, as goqite's own benchmark does. Its job
// runner drains a fifth slower, and beside producers several times slower: one goroutine
// receives for all workers, in line for the connection with all that enqueue and delete.
func (q *goqiteQueue) Work(ctx context.Context, workers int, handle func([]byte)) error {
	g, ctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error { return q.work(ctx, handle) })
	}
	return g.Wait()
}

func (q *goqiteQueue) work(ctx context.Context, handle func([]byte)) error {
	for ctx.Err() == nil {
		m, err := q.queue.ReceiveAndWait(ctx, goqitePoll)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		handle(m.Body)
		if err := q.queue.Delete(context.WithoutCancel(ctx), m.ID); err != nil {
			return err
		}
	}
	return nil
}

func (q *goqiteQueue) Close() error {
	return q.db.Close()
}
