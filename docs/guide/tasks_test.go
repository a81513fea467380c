package guide

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type (
	Image struct{ URL string }
	Size  struct{ Width, Height int }
)

var Resize = pawl.DefineTask[Image, Size]("image.resize")

// thumbnail makes a thumbnail of the image at a URL.
func thumbnail(_ context.Context, url string) (Size, error) {
	if url == "" {
		return Size{}, pawl.Permanent(errors.New("no URL"))
	}
	return Size{160, 120}, nil
}

// handleResize registers the handler of the task.
func handleResize(w *worker.Worker) {
	worker.HandleTask(w, Resize, func(ctx context.Context, job *pawl.Job[Image]) (Size, error) {
		return thumbnail(ctx, job.Args.URL)
	})
}

// resizeAt runs the task for an image, and prints the result.
func resizeAt(ctx context.Context, q *memory.Queue, url string) error {
	size, err := Resize.Do(ctx, q, Image{URL: url})
	var dead *pawl.DeadError
	switch {
	case errors.As(err, &dead):
		return fmt.Errorf("no thumbnail: %s", dead.Text) // no retry is left
	case err != nil:
		return err
	}
	fmt.Println(size)
	return nil
}

// Rule: the task of the guide returns a size, and the text of what failed.
func TestTasks(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	handleResize(w)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.NoError(t, resizeAt(ctx, q, "https://example.com/cat.jpg"))
	require.EqualError(t, resizeAt(ctx, q, ""), "no thumbnail: no URL")
	cancel()
	require.NoError(t, <-done)
}
