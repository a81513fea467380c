// Dashboard is an app with the dashboard mounted below /ops/, and its metrics at /metrics. Its jobs
// send mail, and some of them fail.
//
//	go run ./examples/dashboard [-addr 127.0.0.1:8080] [-db FILE]
//
// It prints two URLs with a user each: ada may do everything, and bob may only look. Their passwords
// are new in each run. It runs until it is interrupted. Without -db the queue is in a temporary
// file. While it runs, jobctl --db FILE works beside it.
//
//   - main.go: the app, from start to clean shutdown
//   - users.go: who may do what
//   - work.go: its jobs, a workflow that waits for an approval, and a schedule
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
	"github.com/gopawl/pawl/dashboard"
	"github.com/gopawl/pawl/metrics"
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
	flags := flag.NewFlagSet("dashboard", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to listen on")
	path := flags.String("db", "", "`file` of the queue (default a temporary file)")
	jobs := flags.Int("n", 400, "how many jobs to enqueue")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" {
		folder, err := os.MkdirTemp("", "pawl-dashboard-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		*path = filepath.Join(folder, "app.db")
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "app", Level: hclog.Warn, Output: os.Stderr})

	var counters metrics.Tally
	q, err := bolt.Open(*path, &bolt.Options{Logger: log, Collector: &counters})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	operators, err := admin.Serve(q, nil)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // on Windows
		return err
	} else if err == nil {
		defer func() { err = errors.Join(err, operators.Close()) }()
	}

	ops, users, err := newDashboard(q, log)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/", users.login(http.StripPrefix("/ops", ops)))
	mux.Handle("/metrics", metrics.Handler(q, &counters))
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	server.RegisterOnShutdown(func() { _ = ops.Close() }) // ends the streams of open pages
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	users.print(out, listener.Addr())

	err = work(ctx, q, log, *jobs)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // interrupted before the worker ran
	}
	limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(limit))
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// newDashboard returns the dashboard of the app. Its users log in before they reach it.
func newDashboard(q admin.Store, log hclog.Logger) (*dashboard.Dashboard, *users, error) {
	users := newUsers()
	d, err := dashboard.New(admin.Of(q), &dashboard.Options{
		Authorize: func(r *http.Request, a dashboard.Action) bool {
			switch roleOf(r) {
			case operator:
				return true
			case viewer:
				return a == dashboard.View // without the arguments of jobs
			}
			return false
		},
		User:   nameOf,
		Hosts:  []string{"localhost", "127.0.0.1"}, // and the name under which users reach the app
		Logger: log,
	})
	return d, users, err
}
