package guide

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/connect"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
)

// Photo is the payload of a job.
type Photo struct{ Path string }

var Shrink = pawl.Define[Photo]("photo.shrink", pawl.Retain(time.Hour))

// shrinkAll enqueues and works, in as many processes as are started.
func shrinkAll(ctx context.Context, path string, paths []string, shrink func(context.Context, Photo) error) error {
	c, err := connect.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, p := range paths {
		if _, err := Shrink.Enqueue(ctx, c, Photo{Path: p}); err != nil {
			return err
		}
	}
	return c.Elect(ctx, func(ctx context.Context, q *bolt.Queue) error {
		w := worker.New(q, nil)
		worker.Handle(w, Shrink, func(ctx context.Context, job *pawl.Job[Photo]) error {
			return shrink(ctx, job.Args)
		})
		return w.Run(ctx)
	})
}

// enqueueOnce enqueues a photo again under the same ID until it is known to be stored.
func enqueueOnce(ctx context.Context, c *connect.Client, p Photo) error {
	e, err := Shrink.Envelope(p)
	if err != nil {
		return err
	}
	e.ID = pawl.NewID(time.Now())
	for {
		_, err := c.Enqueue(ctx, e)
		if !errors.Is(err, pawl.ErrUnknownOutcome) {
			if errors.Is(err, pawl.ErrConflict) { // an earlier try stored it
				err = nil
			}
			return err
		}
	}
}

// countDead counts dead jobs, whichever process owns the file.
func countDead(ctx context.Context, c *connect.Client) (dead int, err error) {
	err = c.Use(ctx, func(a admin.Admin) error {
		s, err := a.Stats(ctx)
		for _, q := range s.Queues {
			dead += q.Dead
		}
		return err
	})
	return dead, err
}

// Rule: the program of the guide enqueues and works, and another client of its file does as well.
func TestProcesses(t *testing.T) {
	path := filepath.Join(memdir.New(t), "photos.db")
	ctx, cancel := context.WithCancel(t.Context())
	photos, ended := make(chan Photo, 2), make(chan error, 1)
	go func() {
		ended <- shrinkAll(ctx, path, []string{"a.jpg"}, func(_ context.Context, p Photo) error {
			photos <- p
			return nil
		})
	}()
	require.Equal(t, Photo{"a.jpg"}, <-photos)
	c, err := connect.Open(t.Context(), path, &connect.Options{Logger: hclog.NewNullLogger(), Timeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, enqueueOnce(t.Context(), c, Photo{"b.jpg"}))
	require.Equal(t, Photo{"b.jpg"}, <-photos)
	dead, err := countDead(t.Context(), c)
	require.NoError(t, err)
	require.Zero(t, dead)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, c.Close())
}
