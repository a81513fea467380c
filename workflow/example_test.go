package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Basket is a customer's order.
type Basket struct {
	Customer string
	Cents    int64
}

// Receipt is the result of an order.
type Receipt struct{ Payment, Parcel string }

// Approval is an approver's answer.
type Approval struct{ Yes bool }

var Approved = workflow.DefineSignal[Approval]("approved")

var Order = workflow.Define("order", func(r *workflow.Run, b Basket) (Receipt, error) {
	var done Receipt
	payment, err := workflow.Step(r, "charge", func(ctx context.Context) (string, error) {
		return bank.Charge(ctx, r.Key(), b.Customer, b.Cents) // the bank deduplicates by this key
	}, workflow.MaxRetries(5), workflow.Timeout(10*time.Second))
	if err != nil {
		return done, err
	}
	r.Undo("refund", func(ctx context.Context) error { return bank.Refund(ctx, payment) })

	answer, err := Approved.Wait(r, 72*time.Hour)
	switch {
	case errors.Is(err, workflow.ErrTimeout):
		return done, errors.New("nobody approved it") // what was named by Undo runs now
	case err != nil:
		return done, err
	case !answer.Yes:
		return done, errors.New("it was refused")
	}

	done.Payment = payment
	done.Parcel, err = workflow.Step(r, "ship", func(ctx context.Context) (string, error) {
		return courier.Ship(ctx, r.Key(), b.Customer)
	})
	return done, err
})

// The services that the flows call.
type (
	bankService    struct{}
	courierService struct{}
)

var (
	bank    bankService
	courier courierService
)

func (bankService) Charge(_ context.Context, _, customer string, cents int64) (string, error) {
	return fmt.Sprintf("%d cents from %s", cents, customer), nil
}

func (bankService) Refund(_ context.Context, payment string) error {
	fmt.Println("refunded", payment)
	return nil
}

func (courierService) Ship(_ context.Context, _, customer string) (string, error) {
	return "a parcel to " + customer, nil
}

// serve is an app that takes orders and works on them.
func serve(ctx context.Context, path string) error {
	q, err := bolt.Open(path, nil)
	if err != nil {
		return err
	}
	defer q.Close()
	e := workflow.Open(q, &workflow.Options{Build: "2026-11-22"})
	w := worker.New(q, nil)
	if err := e.Handle(ctx, w, Order); err != nil {
		return err
	}

	h, err := Order.Start(ctx, e, "2026/1042", Basket{Customer: "ada", Cents: 12900})
	if err != nil {
		return err
	}
	log.Print("started ", h.Run()) // it is on the disk; a second Start of the same ID finds it

	return w.Run(ctx) // until ctx ends
}

// approve is what a page of the app calls.
func approve(ctx context.Context, e *workflow.Engine, order string) error {
	h, err := Order.Handle(ctx, e, order)
	if err != nil {
		return err // workflow.ErrNotFound
	}
	return Approved.Send(ctx, e, h.Run(), Approval{Yes: true}, "approval of "+order)
}

// quiet logs nothing.
var quiet = hclog.NewNullLogger()

// app is an example's app, with its own folder.
func app(flows ...workflow.Definition) (q *bolt.Queue, e *workflow.Engine, w *worker.Worker, end func()) {
	folder, err := os.MkdirTemp("", "workflow")
	if err != nil {
		panic(err)
	}
	if q, err = bolt.Open(filepath.Join(folder, "app.db"), &bolt.Options{Logger: quiet}); err != nil {
		panic(err)
	}
	e = workflow.Open(q, &workflow.Options{Build: "2", Logger: quiet})
	w = worker.New(q, &worker.Options{Logger: quiet})
	if err := e.Handle(context.Background(), w, flows...); err != nil {
		panic(err)
	}
	return q, e, w, func() {
		_ = q.Close()
		_ = os.RemoveAll(folder)
	}
}

// result runs a flow to its end.
func result[In, Out any](f *workflow.Flow[In, Out], in In, more ...workflow.Definition) (out Out, err error) {
	ctx := context.Background()
	_, e, w, end := app(append(more, f)...)
	defer end()
	h, err := f.Start(ctx, e, "example", in)
	if err != nil {
		return out, err
	}
	if err := w.Drain(ctx, pawl.WaitFinished); err != nil {
		return out, err
	}
	return h.Result(ctx)
}

// An order waits for its approval. Nothing of it runs meanwhile.
func Example() {
	ctx := context.Background()
	_, e, w, end := app(Order)
	defer end()
	h, _ := Order.Start(ctx, e, "2026/1042", Basket{Customer: "ada", Cents: 12900})
	_ = w.Drain(ctx, pawl.WaitDrained) // until every run waits or has ended
	info, _ := h.Info(ctx)
	fmt.Println(info.Status, "for", info.Waits)

	_ = approve(ctx, e, "2026/1042")
	_ = w.Drain(ctx, pawl.WaitDrained)
	receipt, err := h.Result(ctx)
	fmt.Println(receipt.Payment, "and", receipt.Parcel, err)
	// Output:
	// waiting for [approved]
	// 12900 cents from ada and a parcel to ada <nil>
}

// A cancelled run undoes its steps.
func ExampleRun_Undo() {
	ctx := context.Background()
	_, e, w, end := app(Order)
	defer end()
	h, _ := Order.Start(ctx, e, "2026/1043", Basket{Customer: "bob", Cents: 50})
	_ = w.Drain(ctx, pawl.WaitDrained)
	_ = h.Cancel(ctx, "the customer asked for it")
	_ = w.Drain(ctx, pawl.WaitDrained)
	_, err := h.Result(ctx)
	fmt.Println(errors.Is(err, workflow.ErrCancelled), err)
	// Output:
	// refunded 50 cents from bob
	// true workflow order "2026/1043" cancelled: the customer asked for it
}

var accounts = []byte("accounts")

var SendReceipt = pawl.Define[string]("receipt.send")

// The writes of a step, which also enqueue a job, happen exactly once.
func ExampleStepTx() {
	deposit := workflow.Define("deposit", func(r *workflow.Run, account string) (uint64, error) {
		return workflow.StepTx(r, "book", func(tx *bbolt.Tx) (uint64, error) {
			b, err := tx.CreateBucketIfNotExists(accounts)
			if err != nil {
				return 0, err
			}
			n, err := b.NextSequence()
			if err != nil {
				return 0, err
			}
			if err := b.Put([]byte(account), fmt.Append(nil, n)); err != nil {
				return 0, err // nothing of this transaction happens
			}
			_, err = SendReceipt.Enqueue(context.Background(), workflow.In(r, tx), account)
			return n, err
		})
	})
	fmt.Println(result(deposit, "ada"))
	// Output: 1 <nil>
}

// A start can be part of an app's transaction.
func ExampleStartTx() {
	ctx := context.Background()
	q, e, _, end := app(Order)
	defer end()
	err := q.Update(ctx, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(accounts)
		if err != nil {
			return err
		}
		if err := b.Put([]byte("ada"), []byte("1042")); err != nil {
			return err
		}
		_, err = workflow.StartTx(tx, e, Order, "2026/1042", Basket{Customer: "ada", Cents: 12900})
		return err // with nil the account and the run are there, otherwise neither
	})
	fmt.Println(err)
	// Output: <nil>
}

// Branches run concurrently.
func ExampleGo() {
	quote := workflow.Define("quote", func(r *workflow.Run, item string) (int, error) {
		ask := func(name string, price int) *workflow.Branch[int] {
			return workflow.Go(r, name, func(r *workflow.Run) (int, error) { // a Run of its own
				return workflow.Step(r, "ask", func(context.Context) (int, error) { return price, nil })
			})
		}
		north, south := ask("north", 30), ask("south", 28)
		prices, err := workflow.All(r, north, south) // or Race, for the first
		if err != nil {
			return 0, err
		}
		return min(prices[0], prices[1]), nil
	})
	fmt.Println(result(quote, "a lamp"))
	// Output: 28 <nil>
}

// Many items run, a few at a time.
func ExampleEach() {
	resize := workflow.Define("resize", func(r *workflow.Run, pictures []string) ([]string, error) {
		itself := func(path string) string { return path }
		return workflow.Each(r, "picture", pictures, itself, 4, func(r *workflow.Run, path string) (string, error) {
			return workflow.Step(r, "resize", func(context.Context) (string, error) { return "small/" + path, nil })
		})
	})
	fmt.Println(result(resize, []string{"a.png", "b.png"}))
	// Output: [small/a.png small/b.png] <nil>
}

// The first of several branches wins: here, a task with a time limit.
func ExampleRace() {
	limited := workflow.Define("limited", func(r *workflow.Run, limit time.Duration) (string, error) {
		task := workflow.Go(r, "task", func(r *workflow.Run) (string, error) {
			return Approved.Name(), workflow.Sleep(r, "work", time.Hour)
		})
		late := workflow.Go(r, "limit", func(r *workflow.Run) (string, error) {
			return "too late", workflow.Sleep(r, "wait", limit)
		})
		_, what, err := workflow.Race(r, "first", task, late)
		return what, err
	})
	fmt.Println(result(limited, 150*time.Millisecond))
	// Output: too late <nil>
}

// Sold is how many tickets of a sale are gone.
var Sold = workflow.DefineValue[int]("sold")

// sell publishes how far it is.
var sell = workflow.Define("sell", func(r *workflow.Run, tickets int) (string, error) {
	for n := range tickets {
		if err := Sold.Publish(r, n+1); err != nil {
			return "", err
		}
		if err := workflow.Sleep(r, "next customer", time.Millisecond); err != nil {
			return "", err
		}
	}
	return "sold out", nil
})

// follow shows a sale until its end, and returns how many tickets were sold.
func follow(ctx context.Context, e *workflow.Engine, run pawl.ID, show func(sold int)) (sold int, err error) {
	for sold, err = range Sold.Watch(ctx, e, run) {
		if err != nil {
			return sold, err
		}
		show(sold)
	}
	return sold, nil
}

// Others read and watch what a run publishes.
func ExampleValue() {
	ctx := context.Background()
	_, e, w, end := app(sell)
	defer end()
	h, _ := sell.Start(ctx, e, "concert", 3)
	_ = w.Drain(ctx, pawl.WaitFinished)
	fmt.Println(Sold.Get(ctx, e, h.Run()))
	fmt.Println(follow(ctx, e, h.Run(), func(sold int) { fmt.Println(sold, "sold") }))
	// Output:
	// 3 true <nil>
	// 3 sold
	// 3 <nil>
}

// A child is a run with its own journal.
func ExampleCall() {
	invoice := workflow.Define("invoice", func(r *workflow.Run, cents int64) (string, error) {
		return fmt.Sprintf("invoice over %d cents", cents), nil
	})
	sale := workflow.Define("sale", func(r *workflow.Run, cents int64) (string, error) {
		return workflow.Call(r, "invoice", invoice, cents) // its ID is that of the sale, then /invoice
	})
	fmt.Println(result(sale, 700, invoice))
	// Output: invoice over 700 cents <nil>
}

// New runs use new code, while older ones continue with the code that they began with.
func ExampleVersion() {
	price := workflow.Define("price", func(r *workflow.Run, cents int64) (int64, error) {
		version, err := workflow.Version(r, "tax", 1, 2)
		if err != nil {
			return 0, err
		}
		if version == 1 {
			return cents * 119 / 100, nil // as it was
		}
		return cents * 107 / 100, nil
	})
	fmt.Println(result(price, 100))
	// Output: 107 <nil>
}

// An endless loop starts over with an empty journal now and then.
func ExampleRestart() {
	countdown := workflow.Define("countdown", func(r *workflow.Run, left int) (string, error) {
		if left == 0 {
			return "lift-off", nil
		}
		if err := workflow.Sleep(r, "tick", 10*time.Millisecond); err != nil {
			return "", err
		}
		return "", workflow.Restart(r, left-1)
	})
	fmt.Println(result(countdown, 3))
	// Output: lift-off <nil>
}

// errors.Is distinguishes the errors of a step, even after a crash.
func ExampleStepError() {
	errEmpty := errors.New("the stock is empty")
	pick := workflow.Define("pick", func(r *workflow.Run, _ string) (string, error) {
		_, err := workflow.Step(r, "take", func(context.Context) (string, error) {
			return "", pawl.Permanent(errEmpty) // not to be tried again
		})
		if errors.Is(err, errEmpty) {
			return "ordered from abroad", nil
		}
		return "", err
	})
	fmt.Println(result(pick, "a lamp"))
	// Output: ordered from abroad <nil>
}

// verifyAll compares every open run with the code of this build.
func verifyAll(ctx context.Context, e *workflow.Engine) (unfit int, err error) {
	for after := ""; ; {
		page, err := e.List(ctx, workflow.Filter{}, after, 1000)
		if err != nil {
			return unfit, err
		}
		for _, run := range page.Runs {
			if run.Status.Ended() {
				continue
			}
			if err := e.Verify(ctx, run.Run); err != nil {
				log.Print(err) // what the journal has, what the code does, and which build wrote it
				unfit++
			}
		}
		if after = page.Next; after == "" {
			return unfit, nil
		}
	}
}

// Before a new build works on a file, it can be compared with the runs in it.
func ExampleEngine_Verify() {
	ctx := context.Background()
	_, e, w, end := app(Order)
	defer end()
	_, _ = Order.Start(ctx, e, "2026/1042", Basket{Customer: "ada", Cents: 12900})
	_ = w.Drain(ctx, pawl.WaitDrained)
	fmt.Println(verifyAll(ctx, e))
	// Output: 0 <nil>
}

var _ = serve
