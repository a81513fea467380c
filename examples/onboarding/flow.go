package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gopawl/pawl/workflow"
)

// Customer is the input of the workflow.
type Customer struct {
	Address string
	Day     time.Duration // length of a day
}

// Week is the result of the workflow.
type Week struct {
	Project string // begun by the customer, or ""
	Mails   int
}

// begun signals that the customer has begun a project.
var begun = workflow.DefineSignal[string]("begun")

// mailer sends mails. It is called at least once for each mail, with the same key, by which the mail
// server can recognize repetitions.
type mailer interface {
	Send(ctx context.Context, key, to, subject string) error
}

// newFlow returns the workflow of the first week.
func newFlow(m mailer) *workflow.Flow[Customer, Week] {
	return workflow.Define("onboarding", func(r *workflow.Run, c Customer) (week Week, err error) {
		mail := func(name, subject string) error {
			_, err := workflow.Step(r, name, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, m.Send(ctx, r.Key(), c.Address, subject)
			})
			if err == nil {
				week.Mails++
			}
			return err
		}
		if err := mail("welcome", "Welcome"); err != nil {
			return week, err
		}
		week.Project, err = begun.Wait(r, 2*c.Day)
		switch {
		case errors.Is(err, workflow.ErrTimeout):
			if err := mail("nudge", "Shall we show you around?"); err != nil {
				return week, err
			}
			if err := workflow.Sleep(r, "rest of the week", 5*c.Day); err != nil {
				return week, err
			}
		case err != nil:
			return week, err
		default:
			if err := mail("tips", "Three tips for "+week.Project); err != nil {
				return week, err
			}
			if err := workflow.Sleep(r, "a few days", 4*c.Day); err != nil {
				return week, err
			}
		}
		return week, mail("question", "How was your first week?")
	}, workflow.Retain(365*24*time.Hour)) // nobody is welcomed twice in a year
}

// printer stands in for a mail server.
type printer struct {
	mu  sync.Mutex
	out io.Writer
}

// Send implements mailer.
func (p *printer) Send(_ context.Context, _, to, subject string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "%s  to %s: %s\n", time.Now().Format(time.TimeOnly), to, subject)
	return err
}
