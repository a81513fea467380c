package system

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSQLitePoll is the least that River takes for FetchCooldown and FetchPollInterval.
// To the second it adds up to 10 ms at random. River's own benchmark has 2 ms and 20 ms.
const riverSQLitePoll = time.Millisecond

// riverSQLiteJob is a job. River stores arguments as JSON, so the payload becomes base64.
type riverSQLiteJob struct {
	Payload []byte `json:"payload"`
}

func (riverSQLiteJob) Kind() string { return "job" }

type riverSQLiteQueue struct {
	db     *sql.DB
	client *river.Client[*sql.Tx] // for inserting
}

func newRiverSQLite(name string, j journal) System {
	return System{
		Name:       name,
		Durability: j.durability,
		Settings: j.String() + ", modernc, 1 connection, PollOnly, FetchCooldown and FetchPollInterval " +
			riverSQLitePoll.String() + ", completes in batches up to 250 ms later, keeps completed jobs",
		Version: moduleVersion("github.com/riverqueue/river") + " (" + moderncVersion() + ")",
		Open: func(ctx context.Context, dir string, _ *Server) (Queue, error) {
			db, err := openModernc(dir, j)
			if err != nil {
				return nil, err
			}
			q := &riverSQLiteQueue{db: db}
			if err := q.init(ctx); err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return q, nil
		},
	}
}

func (q *riverSQLiteQueue) init(ctx context.Context) error {
	migrator, err := rivermigrate.New(riversqlite.New(q.db), &rivermigrate.Config{Logger: errorsOnly()})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	q.client, err = river.NewClient(riversqlite.New(q.db), &river.Config{Logger: errorsOnly()})
	return err
}

func (q *riverSQLiteQueue) Enqueue(ctx context.Context, payload []byte) error {
	_, err := q.client.Insert(ctx, riverSQLiteJob{payload}, nil)
	return err
}

// EnqueueAll uses the variant that reads no rows back.
func (q *riverSQLiteQueue) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	params := make([]river.InsertManyParams, len(payloads))
	for i, payload := range payloads {
		params[i].Args = riverSQLiteJob{payload}
	}
	_, err := q.client.InsertManyFast(ctx, params)
	return err
}

func (q *riverSQLiteQueue) Work(ctx context.Context, workers int, handle func([]byte)) error {
	bundle := river.NewWorkers()
	river.AddWorker(bundle, river.WorkFunc(func(_ context.Context, job *river.Job[riverSQLiteJob]) error {
		handle(job.Args.Payload)
		return nil
	}))
	client, err := river.NewClient(riversqlite.New(q.db), &river.Config{
		FetchCooldown:     riverSQLitePoll,
		FetchPollInterval: riverSQLitePoll,
		Logger:            errorsOnly(),

		// Without it River also looks for notifications, every 50 ms, which is later than
		// its poll for jobs and takes the one connection.
		PollOnly: true,

		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers: bundle,
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()

	// Stop waits for the jobs that run and for the last batch of those that ended: River
	// marks them as completed every 250 ms, or sooner when there are 100.
	stop, cancel := stopContext(ctx)
	defer cancel()
	return client.Stop(stop)
}

func (q *riverSQLiteQueue) Close() error {
	return q.db.Close()
}
