package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/worker"
)

type mail struct {
	To   string
	When time.Time
	note string // does not travel
}

var (
	sendMail = pawl.Define[mail]("mail.send", pawl.MaxRetries(2), pawl.Backoff(pawl.Fixed(time.Hour)))
	count    = pawl.Define[int]("count")
)

// answering is a worker whose handler of mail returns these one after the other, and
// nil after the last.
func answering(q pawl.Queue, answers ...error) *worker.Worker {
	w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	worker.Handle(w, sendMail, func(context.Context, *pawl.Job[mail]) (err error) {
		if len(answers) > 0 {
			err, answers = answers[0], answers[1:]
		}
		return err
	})
	return w
}

// enqueue enqueues a mail.
func enqueue(t testing.TB, q pawl.Queue, to string, opts ...pawl.Option) pawl.ID {
	t.Helper()
	job, err := sendMail.Enqueue(t.Context(), q, mail{To: to}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

// equal fails the test unless two values print alike.
func equal[T any](t testing.TB, want, got T) {
	t.Helper()
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
		t.Fatalf("want %s\n got %s", w, g)
	}
}

// types are those of outcomes.
func types(outcomes []pawltest.Outcome) (all []pawl.EventType) {
	for _, o := range outcomes {
		all = append(all, o.Type)
	}
	return all
}

var errBusy = errors.New("mailbox is busy\nsecond line")

// failing is the t of a test that is to fail.
type failing struct {
	testing.TB
	mu      sync.Mutex
	message string
}

var errFatal = errors.New("fatal")

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.mu.Lock()
	f.message = fmt.Sprintf(format, args...)
	f.mu.Unlock()
	panic(errFatal)
}

// failure is the message with which fn fails its test, "" when it does not.
func failure(t testing.TB, fn func(t testing.TB)) (message string) {
	t.Helper()
	f := &failing{TB: t}
	defer func() {
		if p := recover(); p != nil && p != error(errFatal) {
			panic(p)
		}
		message = f.message
	}()
	fn(f)
	return ""
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
