package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/worker"
)

type Welcome struct{ To string }

var SendWelcome = pawl.Define[Welcome]("mail.welcome", pawl.MaxRetries(2), pawl.Backoff(pawl.Fixed(5*time.Minute)))

// signUp and newWorker are the program under test.
func signUp(ctx context.Context, q pawl.Enqueuer, address string) error {
	_, err := SendWelcome.Enqueue(ctx, q, Welcome{To: address}, pawl.OnQueue("mail"), pawl.Delay(time.Hour))
	return err
}

func newWorker(q pawl.Queue, send func(to string) error) *worker.Worker {
	w := worker.New(q, &worker.Options{Queues: []string{"mail"}, Logger: hclog.NewNullLogger()})
	worker.Handle(w, SendWelcome, func(_ context.Context, job *pawl.Job[Welcome]) error {
		return send(job.Args.To)
	})
	return w
}

func sent(string) error { return nil }

// busy is a mail server that has time for nobody.
func busy(string) error { return errors.New("busy") }

// t stands for the *testing.T of a test, which an example has not.
var t = exampleT{}

type exampleT struct{ testing.TB }

func (exampleT) Helper()                           {}
func (exampleT) Cleanup(func())                    {}
func (exampleT) Context() context.Context          { return context.Background() }
func (exampleT) Output() io.Writer                 { return io.Discard }
func (exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func Example() {
	q := pawltest.New(t, nil)
	if err := signUp(t.Context(), q, "ada@example.com"); err != nil {
		t.Errorf("sign up: %v", err)
	}

	job := pawltest.RequireEnqueued(t, q, SendWelcome, Welcome{To: "ada@example.com"})
	fmt.Println("on queue", job.Queue, "after", job.NotBefore.Sub(job.Created))
	pawltest.RequireNothingElse(t, q)

	q.Advance(time.Hour)
	fmt.Println(pawltest.RunOne(t, q, newWorker(q, sent)))
	// Output:
	// on queue mail after 1h0m0s
	// mail.welcome {"To":"ada@example.com"} on queue "mail": succeeded
}

// A failed attempt, its retry, and nothing more until the next one is due.
func ExampleRunOne() {
	q := pawltest.New(t, nil)
	w := newWorker(q, busy)
	_, _ = SendWelcome.Enqueue(t.Context(), q, Welcome{To: "ada@example.com"}, pawl.OnQueue("mail"))

	got := pawltest.RunOne(t, q, w)
	fmt.Println(got.Type, got.Delay, got.Cause)
	q.Advance(got.Delay)
	fmt.Println(pawltest.RunOne(t, q, w))
	fmt.Println(pawltest.RunOne(t, q, w))
	// Output:
	// retried 5m0s busy
	// mail.welcome {"To":"ada@example.com"} on queue "mail": retried in 5m0s: busy
	// no job was ready
}

// All attempts of all jobs, without waiting for any.
func ExampleDrain() {
	q := pawltest.New(t, nil)
	_ = signUp(t.Context(), q, "ada@example.com")
	for _, o := range pawltest.Drain(t, q, newWorker(q, busy)) {
		fmt.Println(o.Job.Attempts, o.Type)
	}
	// Output:
	// 1 retried
	// 2 retried
	// 3 died
}

// What was enqueued, to be compared as a whole.
func ExampleEnqueued() {
	q := pawltest.New(t, nil)
	_ = signUp(t.Context(), q, "ada@example.com")
	_ = signUp(t.Context(), q, "grace@example.com")
	fmt.Println(pawltest.Enqueued(t, q, SendWelcome))
	// Output: [{ada@example.com} {grace@example.com}]
}
