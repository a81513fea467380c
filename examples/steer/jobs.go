package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Mail is the payload of a mail.
type Mail struct {
	To     string
	Number int
}

// Report is the payload of a report.
type Report struct {
	Title string
	Lines int
}

// The kinds of jobs of this app.
var (
	SendMail = pawl.Define[Mail]("mail.send", pawl.OnQueue("mail"), pawl.MaxRetries(2),
		pawl.Backoff(pawl.Exponential(200*time.Millisecond, 2).FullJitter()))
	Render = pawl.Define[Report]("report.render", pawl.OnQueue("reports"))
)

var (
	errNoMailbox = errors.New("550 no such mailbox")
	errBusy      = errors.New("421 the server is busy, timeout")
)

// send takes 20 ms. One mail of 20 has no mailbox until an operator retries it, and one of 7 finds the
// server busy at first.
func send(ctx context.Context, job *pawl.Job[Mail]) error {
	switch {
	case job.Args.Number%20 == 19 && job.Failures == 0:
		return pawl.Permanent(errNoMailbox)
	case job.Args.Number%7 == 6 && job.Attempt == 1:
		return errBusy
	}
	return pass(ctx, 20*time.Millisecond)
}

// render takes two seconds, and stops with its context.
func render(ctx context.Context, job *pawl.Job[Report]) error {
	return pass(ctx, 2*time.Second)
}

// pass waits for d or for the end of ctx.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// produce enqueues mails at a rate per second, and now and then a report, some of them for tomorrow.
func produce(ctx context.Context, q pawl.Enqueuer, rate int) error {
	if rate == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, err := SendMail.Enqueue(ctx, q, Mail{To: fmt.Sprintf("reader%d@example.com", n), Number: n})
		if err == nil && n%(2*rate) == 0 {
			_, err = Render.Enqueue(ctx, q, Report{Title: fmt.Sprintf("report %d", n/rate), Lines: n})
		}
		if err == nil && n%(4*rate) == rate {
			_, err = Render.Enqueue(ctx, q, Report{Title: "of tomorrow"}, pawl.Delay(24*time.Hour))
		}
		if errors.Is(err, pawl.ErrNotAccepted) {
			return nil // the app stops
		}
		if err != nil {
			return err
		}
	}
}
