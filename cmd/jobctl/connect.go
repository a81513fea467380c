package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt/offline"
)

// open reaches the queue through the app at --addr, the app that serves the file, or the file
// itself. It never creates a missing file.
func (a *app) open(ctx context.Context) (admin.Admin, error) {
	if a.flags.addr != "" {
		token := a.env("JOBCTL_TOKEN")
		if token != "" && strings.TrimSpace(token) == "" {
			return nil, usage("", "JOBCTL_TOKEN is blank; set it to the app's token, or unset it")
		}
		queue, err := admin.Dial(ctx, a.flags.addr, &admin.DialOptions{Token: token, Timeout: a.flags.timeout})
		var wrong *pawl.InvalidError
		switch {
		case errors.As(err, &wrong) && wrong.Field == "Token":
			return nil, usage("", "JOBCTL_TOKEN: %s", wrong.Reason)
		case wrong != nil:
			return nil, usage("", "--addr: %s", err)
		}
		return queue, err
	}
	if a.flags.server != "" {
		return a.openServer(ctx, false)
	}
	file := offline.New(a.flags.db, &offline.Options{
		Insecure: a.flags.insecure,
		Logger:   a.logger(),
		Notice:   a.note,
		Now:      a.now,
	})
	return admin.Open(ctx, file, &admin.DialOptions{Timeout: a.flags.timeout})
}

// logger discards messages, since errors are returned. With -v it prints the rest.
func (a *app) logger() hclog.Logger { return a.loggerTo(escaped{a}) }

func (a *app) loggerTo(out io.Writer) hclog.Logger {
	if !a.flags.verbose {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{Name: "jobctl", Level: hclog.Debug, Output: out})
}

// escaped writes to standard error and escapes untrusted text.
type escaped struct{ app *app }

func (e escaped) Write(b []byte) (int, error) {
	e.app.say("%s", b)
	return len(b), nil
}

// with opens the queue while do runs.
func (a *app) with(ctx context.Context, do func(admin.Admin) error) error {
	queue, err := a.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(queue), queue.Close())
}

// read returns what do reads while with keeps the queue open.
func read[Q, T any](ctx context.Context, with func(context.Context, func(Q) error) error, do func(Q) (T, error)) (found T, err error) {
	err = with(ctx, func(q Q) (err error) {
		found, err = do(q)
		return err
	})
	return found, err
}

// live reports whether an app has the queue.
func live(ctx context.Context, queue admin.Admin) (bool, error) {
	s, err := queue.Stats(ctx)
	return s.Process != nil, err
}
