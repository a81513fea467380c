// Thumbnails is an HTTP app that makes thumbnails of pictures. The app and its queue are one program.
//
//	go run ./examples/thumbnails [-addr 127.0.0.1:8080] [-folder thumbnails] [-pause 0s]
//
// It prints its URL. The page there uploads a picture, shows the progress, and then shows the thumbnail. From a shell:
//
//	curl --data-binary @photo.jpg http://127.0.0.1:8080/pictures    # prints the ID of the job
//	curl http://127.0.0.1:8080/pictures/ID/events                   # follows its progress
//	curl -o small.png http://127.0.0.1:8080/pictures/ID             # the thumbnail
//
// You can stop or kill it at any moment, and start it again: every picture that it accepted still gets its thumbnail.
// While it runs, jobctl --db thumbnails/jobs.db shows its queue. With -pause, it waits after each row of pixels, so that
// you can watch the progress.
//
//   - main.go: the app, from start to clean shutdown
//   - routes.go: upload, progress, and result
//   - picture.go: the task
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("thumbnails", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to listen on")
	folder := flags.String("folder", "thumbnails", "`folder` of the queue and the pictures")
	pause := flags.Duration("pause", 0, "`time` to wait after each row")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(*folder, 0o700); err != nil {
		return err
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "thumbnails", Level: hclog.Warn, Output: os.Stderr})

	// The queue opens first and closes last. A job that a killed process left is ready again.
	q, err := bolt.Open(filepath.Join(*folder, "jobs.db"), &bolt.Options{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	operators, err := admin.Serve(q, nil) // for jobctl
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	} else if err == nil {
		defer func() { err = errors.Join(err, operators.Close()) }()
	}

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	site := &app{queue: q, folder: *folder, stopping: ctx, log: log}
	server := &http.Server{Handler: site.routes(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() {
		defer stop() // an app without its server stops
		served <- server.Serve(listener)
	}()
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(limit) != nil { // uploads may finish, and streams end
			_ = server.Close() // an upload took too long; its client has no answer, and tries again
		}
		close(closed)
	})
	fmt.Fprintf(out, "http://%s/\n", listener.Addr())

	w := worker.New(q, &worker.Options{Concurrency: 4, Logger: log})
	worker.HandleTask(w, MakeThumbnail, thumbnails{*folder, *pause}.make)
	err = w.Run(ctx)

	stop() // ctx is still alive if Run returned an error
	<-closed
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}
