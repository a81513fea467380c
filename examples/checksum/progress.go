package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl/bolt"
)

// showProgress draws a bar on a terminal, or else writes a line every 10 s, until stop is called.
func showProgress(ctx context.Context, w io.Writer, files int, q *bolt.Queue) (stop func()) {
	every, end := 10*time.Second, "\n"
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			every, end = 100*time.Millisecond, "\r"
		}
	}
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				if end == "\r" {
					fmt.Fprintf(w, "%s\n", line(ctx, files, q))
				}
				return
			case <-ticker.C:
				fmt.Fprintf(w, "%s%s", line(ctx, files, q), end)
			}
		}
	})
	return func() { close(done); drawing.Wait() }
}

func line(ctx context.Context, files int, q *bolt.Queue) string {
	left, dead, err := count(context.WithoutCancel(ctx), q)
	if err != nil {
		return err.Error()
	}
	done := max(files-left-dead, 0)
	const width = 30
	full := width * (done + dead) / max(files, 1)
	text := fmt.Sprintf("[%-*s] %3d%%  %d of %d files", width, strings.Repeat("=", full),
		100*(done+dead)/max(files, 1), done, files)
	if dead > 0 {
		text += fmt.Sprintf(", %d failed", dead)
	}
	return text
}
