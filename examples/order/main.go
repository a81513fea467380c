// Order takes orders through a shop: it reserves the goods, charges the customer, waits up to three days
// for an approval, and ships. An order that is refused or not approved in time is undone: money and goods
// are returned. It is a workflow: kill the program at any moment, start it again, and every order
// continues.
//
//	order place ID CENTS    processes an order until it waits for approval
//	order approve ID        ships it
//	order refuse ID         undoes it
//	order work              continues with due orders, such as those that waited too long
//	order list              lists the orders
//
// Try it:
//
//	go run ./examples/order -state /tmp/shop place 1042 12900
//	go run ./examples/order -state /tmp/shop list
//	go run ./examples/order -state /tmp/shop approve 1042
//
// The workflow is an ordinary function in flow.go. The stock, the bank and the courier are in world.go;
// they recognize repeated calls by their key.
//
// Nothing runs while all orders wait: there is no daemon, and the deadline of an approval is stored. The
// state folder holds the orders in orders.db and every effect on the world in effects.log. With
// -db postgres://app@db/app the orders are in that database instead, and nothing else changes. Run one
// order at a time on one place. Finished orders are listed for a week.
//
// Exit codes: 0 done, 1 failed, 2 usage, 130 interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(new(program).main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// program is one run of order.
type program struct {
	// Set by tests.
	now    func() time.Time      // nil means time.Now
	around []workflow.Middleware // around every step
	rests  func()                // called when every order waits or has ended

	state string
	db    string
	out   io.Writer
	shop  *shop
	e     *workflow.Engine
}

// usageError is an invalid command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func (p *program) main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p.out = stdout
	flags := flag.NewFlagSet("order", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&p.state, "state", "shop", "`folder` with the effects on the world, and with the orders unless -db says otherwise")
	flags.StringVar(&p.db, "db", "", "`place` of the orders: a file, or a postgres:// URL (default orders.db in the state folder)")
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: order [-state FOLDER] [-db PLACE] place ID CENTS | approve ID | refuse ID | work | list\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	err := p.run(ctx, flags.Args())
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "error:", err)
		flags.Usage()
		return 2
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; order work continues")
		return 130
	}
	fmt.Fprintln(stderr, "error:", err)
	return 1
}

func (p *program) run(ctx context.Context, args []string) (err error) {
	name, order, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return err
	}
	world, err := openWorld(filepath.Join(p.state, "effects.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	q, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	p.shop = newShop(world)
	p.e = workflow.Open(q, &workflow.Options{Middleware: p.around, Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Concurrency: 4, Logger: hclog.NewNullLogger()})
	if err := p.e.Handle(ctx, w, p.shop.order); err != nil {
		return err
	}
	return p.do(ctx, w, name, order)
}

// store is a queue that has runs of workflows.
type store interface {
	pawl.Queue
	workflow.Store
	Close() error
}

// open opens the file or the database with the orders. It lets an order crash forever, because killing
// the program is not the fault of an order.
func (p *program) open(ctx context.Context) (store, error) {
	place := cmp.Or(p.db, filepath.Join(p.state, "orders.db"))
	if strings.Contains(place, "://") {
		return postgres.Open(ctx, place, &postgres.Options{
			Schema:     "shop",
			Owner:      "shop", // it takes back at once what a killed one held
			MaxCrashes: postgres.NoMaxCrashes,
			Logger:     hclog.NewNullLogger(),
			Now:        p.now,
		})
	}
	return bolt.Open(place, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes,
		Logger:     hclog.NewNullLogger(),
		Now:        p.now,
	})
}

// parse returns the command and the order that it names, if any.
func parse(args []string) (name string, o Order, err error) {
	if len(args) > 0 {
		name = args[0]
	}
	operands, ok := map[string]int{"place": 2, "approve": 1, "refuse": 1, "work": 0, "list": 0}[name]
	if !ok {
		return "", o, usageError{fmt.Sprintf("no command %q", name)}
	}
	if len(args) != 1+operands {
		return "", o, usageError{fmt.Sprintf("%s takes %d arguments", name, operands)}
	}
	if operands > 0 {
		o.ID = args[1]
	}
	if operands > 1 {
		if o.Cents, err = strconv.ParseInt(args[2], 10, 64); err != nil || o.Cents <= 0 {
			return "", o, usageError{fmt.Sprintf("%q is not a number of cents", args[2])}
		}
	}
	return name, o, nil
}

// do runs a command, then everything that is due, and lists the orders.
func (p *program) do(ctx context.Context, w *worker.Worker, name string, o Order) (err error) {
	switch name {
	case "place":
		_, err = p.shop.order.Start(ctx, p.e, o.ID, o) // nil means that the order is on disk and will be processed
	case "approve", "refuse":
		err = p.answer(ctx, o.ID, name == "approve")
	case "list":
		return p.list(ctx)
	}
	if err != nil {
		return err
	}
	if err := w.Drain(ctx, pawl.WaitDrained); err != nil {
		return err
	}
	if p.rests != nil {
		p.rests()
	}
	return p.list(ctx)
}

// answer sends the approval or refusal of an order.
func (p *program) answer(ctx context.Context, id string, yes bool) error {
	h, err := p.shop.order.Handle(ctx, p.e, id)
	if err != nil {
		return err
	}
	return approval.Send(ctx, p.e, h.Run(), Approval{Yes: yes}, "")
}

// list prints all orders, oldest first.
func (p *program) list(ctx context.Context) error {
	for after := ""; ; {
		page, err := p.e.List(ctx, workflow.Filter{Flow: p.shop.order.Name()}, after, 100)
		if err != nil {
			return err
		}
		for _, order := range page.Runs {
			line := fmt.Sprintf("%-10s %s", order.ID, order.Status)
			switch {
			case order.Status == workflow.Waiting:
				line += " for approval, until " + order.Due.Local().Format("Mon 15:04")
			case order.Status == workflow.Sleeping:
				line += " until " + order.Due.Local().Format("Mon 15:04")
			case order.Error != "":
				line += ": " + order.Error
			}
			fmt.Fprintln(p.out, line)
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}
