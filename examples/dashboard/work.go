package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Mail is one letter of the app.
type Mail struct {
	To       string
	Number   int
	Template string
	Token    string // hidden on the dashboard
}

// Report is the arguments of a report.
type Report struct{ Month string }

var (
	sendMail   = pawl.Define[Mail]("mail.send", pawl.OnQueue("email"), pawl.MaxRetries(2), pawl.Backoff(pawl.Fixed(time.Second)), pawl.Retain(time.Hour))
	makeReport = pawl.Define[Report]("report.make", pawl.OnQueue("reports"), pawl.Retain(time.Hour))

	approved = workflow.DefineSignal[bool]("approved")
	order    = workflow.Define("order", func(r *workflow.Run, in Mail) (string, error) {
		if _, err := workflow.Step(r, "reserve", func(ctx context.Context) (string, error) { return "shelf 7", nap(ctx, 40*time.Millisecond) }); err != nil {
			return "", err
		}
		payment, err := workflow.Step(r, "charge", func(ctx context.Context) (string, error) { return "pay_1042", nap(ctx, 120*time.Millisecond) })
		if err != nil {
			return "", err
		}
		r.Undo("refund", func(context.Context) error { return nil })
		if _, err := approved.Wait(r, 72*time.Hour); err != nil {
			return "", err
		}
		return workflow.Step(r, "ship", func(ctx context.Context) (string, error) { return payment + " shipped", nap(ctx, 80*time.Millisecond) })
	})
)

// nap stands for work.
func nap(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// send fails for some numbers, as mail servers do.
func send(ctx context.Context, job *pawl.Job[Mail]) error {
	if err := nap(ctx, 5*time.Millisecond); err != nil {
		return err
	}
	switch n := job.Args.Number; {
	case n%37 == 1:
		return fmt.Errorf("dial tcp 10.0.%d.%d:25: connect: connection refused", n%4, n%200)
	case n%53 == 2:
		return pawl.Permanent(fmt.Errorf("550 mailbox %q does not exist", job.Args.To))
	case n%149 == 3:
		var templates map[string]func() string
		templates[job.Args.Template]() // panics: no template is loaded
	}
	return nil
}

// work enqueues jobs and runs them until ctx ends.
func work(ctx context.Context, q *bolt.Queue, log hclog.Logger, n int) error {
	e := workflow.Open(q, nil)
	w := worker.New(q, &worker.Options{Logger: log, Concurrency: 8, Queues: []string{"default", "email", "reports"}})
	worker.Handle(w, sendMail, send)
	worker.Handle(w, makeReport, func(ctx context.Context, _ *pawl.Job[Report]) error { return nap(ctx, 30*time.Millisecond) })
	if err := e.Handle(ctx, w, order); err != nil {
		return err
	}
	s, err := schedule.Open(q, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Sync(ctx,
		schedule.Job("monthly report", "0 6 1 * *", makeReport, Report{Month: "last"}, schedule.In("Europe/Berlin")),
		schedule.Job("minute report", "* * * * *", makeReport, Report{Month: "this"}),
		schedule.Flow("standing order", "30 2 * * MON-FRI", order, Mail{To: "ada@example.com"}))
	if err == nil {
		err = enqueue(ctx, q, e, n)
	}
	if err == nil {
		err = w.Run(ctx)
	}
	return err
}

// enqueue stores the jobs of this run. A second start on the same file adds no second order.
func enqueue(ctx context.Context, q *bolt.Queue, e *workflow.Engine, n int) error {
	for i := range n {
		mail := Mail{To: fmt.Sprintf("user%d@example.com", i), Number: i, Template: "welcome", Token: "t0p-secret"}
		var opts []pawl.Option
		if i%10 == 9 {
			opts = append(opts, pawl.Delay(time.Duration(i)*time.Minute))
		}
		if _, err := sendMail.Enqueue(ctx, q, mail, opts...); err != nil {
			return err
		}
	}
	for i := range 3 {
		_, err := order.Start(ctx, e, fmt.Sprintf("2026/%d", 1042+i), Mail{To: "ada@example.com"})
		if err != nil && !errors.Is(err, workflow.ErrConflict) {
			return err
		}
	}
	return nil
}
