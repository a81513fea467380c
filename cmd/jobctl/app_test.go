package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// greeting is the argument of the app's handlers.
type greeting struct {
	Name string
	Fail bool
}

var (
	greet = pawl.Define[greeting]("greet")
	block = pawl.Define[struct{}]("block")
)

// pawlapp is an app for scripts: it opens a file and serves it to operators until its standard
// input ends. Words after the file change that: with "silent" it does not serve, with "work" it
// runs a worker, with "flows" the worker also runs workflows, and with "changed" their code
// differs. It prints "ready" when it is ready.
func pawlapp() {
	if err := serveFile(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "pawlapp:", err)
		os.Exit(1)
	}
}

func serveFile(path string, words []string) (err error) {
	log := hclog.NewNullLogger()
	q, err := bolt.Open(path, &bolt.Options{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if !slices.Contains(words, "silent") {
		server, err := admin.Serve(q, &admin.Options{Name: "billing-api", Logger: log})
		if err != nil {
			return err
		}
		defer server.Close()
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	if slices.Contains(words, "work") {
		w := worker.New(q, &worker.Options{Queues: []string{"email", "default"}, Logger: log})
		worker.Handle(w, greet, func(_ context.Context, job *pawl.Job[greeting]) error {
			if job.Args.Fail {
				return pawl.Permanent(fmt.Errorf("nobody is called %s", job.Args.Name))
			}
			return os.WriteFile("greeted-"+job.Args.Name, nil, 0o600)
		})
		worker.Handle(w, block, func(ctx context.Context, _ *pawl.Job[struct{}]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if slices.Contains(words, "flows") {
			build, all := flows(slices.Contains(words, "changed"))
			if err := workflow.Open(q, &workflow.Options{Build: build, Logger: log}).Handle(ctx, w, all...); err != nil {
				return err
			}
		}
		go func() { ended <- w.Run(ctx) }()
	} else {
		ended <- nil
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	return <-ended
}
