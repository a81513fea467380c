package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/worker"
)

type Invoice struct {
	Number string
	Cents  int64
}

var SendInvoice = pawl.Define[Invoice]("invoice.send")

// A unique key lets no two jobs wait at a time; an idempotency key lets no effect happen
// twice.
func ExampleUnique() {
	ctx := context.Background()
	q := memory.New(nil)
	defer q.Close()
	invoice := Invoice{Number: "2026-117"}

	job, err := SendInvoice.Enqueue(ctx, q, invoice,
		pawl.Unique(invoice.Number),                // one at a time waits or runs; another enqueue gets its ID
		pawl.IdempotencyKey(invoice.Number),        // and once one has succeeded, no other runs for a day
		pawl.Deadline(time.Now().Add(2*time.Hour))) // nobody wants it later
	again, err2 := SendInvoice.Enqueue(ctx, q, invoice, pawl.Unique(invoice.Number))
	fmt.Println(job.Existing, again.Existing, again.ID == job.ID, err, err2)
	// Output: false true true <nil> <nil>
}

// The effect of a job and its end are one transaction, for data that lies in the file of
// the queue: exactly once, however often the process is killed.
func ExampleEnqueuer_transaction() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "pawl-*")
	defer os.RemoveAll(dir)
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})

	worker.Handle(w, SendInvoice, func(ctx context.Context, job *pawl.Job[Invoice]) error {
		return q.Update(ctx, func(tx *bbolt.Tx) error {
			if err := book(tx, job.Args); err != nil {
				return err // nothing of this transaction happens
			}
			if _, err := SendWelcome.Enqueue(ctx, q.In(tx), Welcome{To: "ada@example.com"}); err != nil {
				return err
			}
			return q.AckTx(tx, job.Lease) // if this commits, the job is done, whatever comes after
		})
	})

	worker.Handle(w, SendWelcome, func(context.Context, *pawl.Job[Welcome]) error { return nil })
	_, err = SendInvoice.Enqueue(ctx, q, Invoice{Number: "2026-117", Cents: 4200})
	fmt.Println(err, w.Drain(ctx, pawl.WaitFinished))
	// Output: <nil> <nil>
}

func book(tx *bbolt.Tx, i Invoice) error {
	invoices, err := tx.CreateBucketIfNotExists([]byte("invoices"))
	if err != nil {
		return err
	}
	return invoices.Put([]byte(i.Number), fmt.Append(nil, i.Cents))
}

// What a queue tells: counters, events, and a log that an app has already.
func ExampleCollector() {
	dir, _ := os.MkdirTemp("", "pawl-*")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")

	var tally metrics.Tally // or your own collector, which exports the figures
	q, err := bolt.Open(path, &bolt.Options{
		Collector: &tally,
		Logger:    slog.Default(), // or an hclog.Logger
		OnEvent: func(e pawl.Event) {
			if e.Type == pawl.EventDied {
				alert(e.Job, e.Cause)
			}
		},
	})

	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	_, _ = SendInvoice.Enqueue(context.Background(), q, Invoice{})
	fmt.Println(tally.Snapshot().Total(metrics.JobsFetched))
	// Output: 0
}

func alert(*pawl.Envelope, string) {}

// Only jobs that hold a signature by one of the keys run.
func ExampleKeyring() {
	ctx := context.Background()
	q := memory.New(nil)
	defer q.Close()
	secret := []byte("at least 32 bytes, from a safe place")

	keys, err := pawl.NewKeyring("2026-11", map[string][]byte{"2026-11": secret})
	if err != nil {
		log.Fatal(err)
	}
	job, err := SendInvoice.Enqueue(ctx, keys.Signing(q), Invoice{Number: "2026-118"})
	w := worker.New(q, &worker.Options{Verify: keys})

	worker.Handle(w, SendInvoice, func(context.Context, *pawl.Job[Invoice]) error { return nil })
	fmt.Println(err, w.ProcessOnce(ctx))
	_, err = q.Job(ctx, job.ID)
	fmt.Println(errors.Is(err, pawl.ErrNotFound))
	// Output:
	// <nil> <nil>
	// true
}
