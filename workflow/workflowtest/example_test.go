package workflowtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Order and Approved are the program under test.
var (
	Order = workflow.Define("order", func(r *workflow.Run, item string) (string, error) {
		payment, err := workflow.Step(r, "charge", func(context.Context) (string, error) {
			return "", errors.New("the bank is for real orders")
		})
		if err != nil {
			return "", err
		}
		if yes, err := Approved.Wait(r, 72*time.Hour); err != nil || !yes {
			return "", errors.Join(errors.New("not approved"), err)
		}
		if err := workflow.Sleep(r, "collect", 8*time.Hour); err != nil {
			return "", err
		}
		return item + " for " + payment, nil
	})
	Approved = workflow.DefineSignal[bool]("approved")
)

// exampleT stands for the *testing.T of a test, which an example has not.
type exampleT struct {
	testing.TB
	folder string
	ends   []func()
}

func (t *exampleT) Helper()                           {}
func (t *exampleT) Cleanup(fn func())                 { t.ends = append(t.ends, fn) }
func (t *exampleT) Context() context.Context          { return context.Background() }
func (t *exampleT) Output() io.Writer                 { return io.Discard }
func (t *exampleT) Failed() bool                      { return false }
func (t *exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleT) TempDir() string {
	t.folder, _ = os.MkdirTemp("", "workflowtest")
	return t.folder
}

func (t *exampleT) end() {
	for _, fn := range t.ends {
		fn()
	}
	_ = os.RemoveAll(t.folder)
}

func Example() {
	t := new(exampleT)
	defer t.end()

	k := workflowtest.New(t, nil, Order)
	k.Stub("charge", func(context.Context) (any, error) { return "payment 7", nil })
	k.CrashAfter("charge") // the effect took place, but the journal has no record of it

	run := workflowtest.Start(k, Order, "1042", "a lamp") // until it waits
	k.Advance(24 * time.Hour)
	workflowtest.Send(run, Approved, true)
	receipt, err := run.Result() // moves the clock over all that is waited for
	fmt.Println(receipt, err)
	fmt.Println(k.Attempts("charge"))
	fmt.Print(run.Journal())
	// Output:
	// a lamp for payment 7 <nil>
	// 2
	// step charge: "payment 7"
	// wait approved, 24h0m0s: true
	// sleep collect, 8h0m0s
}
