package system

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/gopawl/pawl/jetstream"
)

// natsSettings are those of the server, which runs in this process.
const natsSettings = "sync_interval: always, one connection"

// natsTTR is how long a job is with a worker.
const natsTTR = 10 * time.Minute

// PawlJetStream is this library over a server that is set up as that of [JetStream], whose client is bare.
func PawlJetStream() System {
	return System{
		Name:       Pawl().Name + "-jetstream",
		Durability: Synced,
		Settings:   natsSettings + "; default options",
		Version:    "this checkout",
		Start:      startNATS,
		Open: func(ctx context.Context, _ string, server *Server) (Queue, error) {
			if err := emptyNATS(ctx, server.Addr); err != nil {
				return nil, err
			}
			q, err := jetstream.Open(ctx, server.Addr, &jetstream.Options{Lease: natsTTR, Synced: true, Logger: hclog.NewNullLogger()})
			if err != nil {
				return nil, err
			}
			return oneByOne{client{q}}, nil
		},
	}
}

// JetStream is a stream of NATS with work-queue retention.
func JetStream() System {
	return System{
		Name:       "jetstream",
		Durability: Synced,
		Settings:   fmt.Sprintf("%s; each worker pulls one message, acks confirmed; bulk: %d goroutines", natsSettings, producers),
		Version:    "nats.go " + moduleVersion("github.com/nats-io/nats.go"),
		Start:      startNATS,
		Open:       openNATS,
	}
}

func startNATS(_ context.Context, dir string) (*Server, error) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: filepath.Join(dir, "nats"),
		SyncAlways: true, NoLog: true, NoSigs: true, MaxPayload: 8 << 20,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	stop := func() error {
		s.Shutdown()
		s.WaitForShutdown()
		return nil
	}
	if !s.ReadyForConnections(startTimeout) {
		return nil, errors.Join(errors.New("the NATS server did not start"), stop())
	}
	return &Server{Addr: s.ClientURL(), Version: "NATS " + server.VERSION, Stop: stop}, nil
}

// emptyNATS deletes all streams but an empty one. After the last, the server would remove
// the directories of the account while the next stream is already made in them, and that
// stream would fail ("error creating store for stream").
func emptyNATS(ctx context.Context, address string) error {
	nc, err := nats.Connect(address)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := natsjs.New(nc)
	if err != nil {
		return err
	}
	const keep = "KEEP"
	if _, err := js.CreateOrUpdateStream(ctx, natsjs.StreamConfig{Name: keep, Subjects: []string{"keep"}}); err != nil {
		return err
	}
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		if name == keep {
			continue
		}
		if err := js.DeleteStream(ctx, name); err != nil {
			return err
		}
	}
	return names.Err()
}

type natsQueue struct {
	nc   *nats.Conn
	js   natsjs.JetStream
	jobs natsjs.Consumer
}

func openNATS(ctx context.Context, _ string, server *Server) (_ Queue, err error) {
	if err := emptyNATS(ctx, server.Addr); err != nil {
		return nil, err
	}
	q := new(natsQueue)
	if q.nc, err = nats.Connect(server.Addr); err != nil {
		return nil, err
	}
	if q.js, err = natsjs.New(q.nc); err == nil {
		_, err = q.js.CreateStream(ctx, natsjs.StreamConfig{
			Name: "JOBS", Subjects: []string{"jobs"}, Retention: natsjs.WorkQueuePolicy,
		})
	}
	if err == nil {
		q.jobs, err = q.js.CreateConsumer(ctx, "JOBS", natsjs.ConsumerConfig{
			Durable: "workers", AckPolicy: natsjs.AckExplicitPolicy, AckWait: natsTTR, MaxAckPending: -1,
		})
	}
	if err != nil {
		q.nc.Close()
		return nil, err
	}
	return q, nil
}

func (q *natsQueue) Enqueue(ctx context.Context, payload []byte) error {
	_, err := q.js.Publish(ctx, "jobs", payload)
	return err
}

// EnqueueAll is many calls. Each is answered by itself.
func (q *natsQueue) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	return spread(ctx, payloads, q.Enqueue)
}

func (q *natsQueue) Work(ctx context.Context, workers int, handle func(payload []byte)) error {
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error { return q.work(ctx, handle) })
	}
	return group.Wait()
}

func (q *natsQueue) work(ctx context.Context, handle func(payload []byte)) error {
	for {
		m, err := q.jobs.Next(natsjs.FetchContext(ctx))
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrTimeout):
			continue
		case err != nil:
			return err
		}
		handle(m.Data())
		if err := m.DoubleAck(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

func (q *natsQueue) Close() error {
	q.nc.Close()
	return nil
}
