package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/sqlite"
	"github.com/gopawl/pawl/worker"
)

type Invoice struct{ Number int }

var SendInvoice = pawl.Define[Invoice]("send-invoice")

// place stores an order and the job that sends its invoice, both or neither.
func place(ctx context.Context, q *sqlite.Queue, number int) error {
	return q.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES (?)", number); err != nil {
			return err
		}
		_, err := SendInvoice.Enqueue(ctx, q.In(tx), Invoice{Number: number})
		return err
	})
}

// placeIn is place for an app that has a connection of its own to the file.
func placeIn(ctx context.Context, db *sql.DB, q *sqlite.Queue, number int) error {
	tx, err := db.BeginTx(ctx, nil) // BEGIN IMMEDIATE, by _txlock=immediate
	if err != nil {
		return err
	}
	defer tx.Rollback() // unless it is committed
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES (?)", number); err != nil {
		return err
	}
	if _, err := SendInvoice.Enqueue(ctx, q.In(tx), Invoice{Number: number}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return q.Wake(ctx)
}

// send marks an order as sent, and ends the job in the same transaction.
func send(ctx context.Context, q *sqlite.Queue, job *pawl.Job[Invoice]) error {
	return q.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET sent = sent + 1 WHERE number = ?", job.Args.Number); err != nil {
			return err
		}
		return q.AckTx(ctx, tx, job.Lease)
	})
}

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "app.sqlite")
	q, err := sqlite.Open(ctx, path, &sqlite.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=synchronous(full)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE orders (number INTEGER, sent INTEGER DEFAULT 0)"); err != nil {
		log.Fatal(err)
	}
	if err := place(ctx, q, 1); err != nil {
		log.Fatal(err)
	}
	if err := placeIn(ctx, db, q, 2); err != nil {
		log.Fatal(err)
	}

	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, SendInvoice, func(ctx context.Context, job *pawl.Job[Invoice]) error { return send(ctx, q, job) })
	if err := w.Drain(ctx, pawl.WaitDrained); err != nil {
		log.Fatal(err)
	}
	var orders, sent int
	if err := db.QueryRow("SELECT count(*), sum(sent) FROM orders").Scan(&orders, &sent); err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders, "orders,", sent, "invoices")
	// Output: 2 orders, 2 invoices
}
