package guide

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

type Basket struct {
	Customer string
	Cents    int64
}

// GivenUp is the signal that a passenger needs no driver any more.
var GivenUp = workflow.DefineSignal[string]("given up")

// find asks for a driver until somebody answers.
func find(r *workflow.Run, street string) (string, error) {
	for {
		if err := workflow.Sleep(r, "a minute", time.Minute); err != nil {
			return "", err
		}
		free, err := workflow.Step(r, "ask", func(context.Context) (bool, error) { return street == "Main Street", nil })
		if err != nil || free {
			return "ada", err
		}
	}
}

var Ride = workflow.Define("ride", func(r *workflow.Run, street string) (string, error) {
	var driver string
	search := workflow.Go(r, "search", func(r *workflow.Run) (string, error) { return find(r, street) })
	i, err := workflow.Select(r, "found or given up", search.Case(&driver), GivenUp.Case(nil))
	if i == 1 {
		driver, err = "nobody", search.Cancel(r, "stop the search") // and go on at once
	}
	return driver, err
})

var Checks = workflow.Define("checks", func(r *workflow.Run, broken string) (int, error) {
	check := func(name string) *workflow.Branch[string] {
		return workflow.Go(r, name, func(r *workflow.Run) (string, error) {
			if name == broken {
				return "", errors.New("it is broken")
			}
			return name, workflow.Sleep(r, "a while", time.Hour)
		})
	}
	style, tests := check("style"), check("tests")
	results, err := workflow.AllOrNone(r, "checks", style, tests)
	return len(results), err
})

// Rule: a group returns all results, or at once the first error, whatever crashes.
func TestAllOrNone(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Checks)
		n, err := workflowtest.Start(k, Checks, "1", "").Result()
		require.NoError(t, err)
		require.Equal(t, 2, n)
		began := k.Now()
		_, err = workflowtest.Start(k, Checks, "2", "tests").Result()
		require.ErrorContains(t, err, `branch "tests": it is broken`)
		require.Equal(t, began, k.Now(), "it does not wait for the other")
	})
}

// record writes down that an account has changed. It fails for an account that nobody knows.
func record(r *workflow.Run, account string) (string, error) {
	return workflow.Step(r, "record", func(context.Context) (string, error) {
		if account == "" {
			return "", errors.New("nobody knows it")
		}
		return "recorded", nil
	}, workflow.MaxRetries(0))
}

func transfer(thorough bool) *workflow.Flow[string, string] {
	return workflow.Define("transfer", func(r *workflow.Run, account string) (string, error) {
		audit := workflow.Go(r, "audit", func(r *workflow.Run) (string, error) { return record(r, account) })
		if err := workflow.Sleep(r, "settle", time.Hour); err != nil {
			return "", err // and audit is cancelled
		}
		if !thorough {
			return "moved", nil // the run ends when audit has ended, and fails if audit failed
		}
		return audit.Wait(r)
	})
}

// Rule: the error of a branch that nobody awaited fails the run, whatever crashes.
func TestErrorThatNobodyAwaited(t *testing.T) {
	for _, thorough := range []bool{false, true} {
		workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
			f := transfer(thorough)
			k := workflowtest.New(t, &workflowtest.Options{At: at}, f)
			out, err := workflowtest.Start(k, f, "1", "ada").Result()
			require.NoError(t, err)
			require.Equal(t, map[bool]string{false: "moved", true: "recorded"}[thorough], out)
			_, err = workflowtest.Start(k, f, "2", "").Result()
			require.ErrorContains(t, err, "nobody knows it")
		})
	}
}

// Rule: a cancelled branch makes no more calls, whatever crashes.
func TestCancelledBranch(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Ride)
		run := workflowtest.Start(k, Ride, "1", "Side Street")
		k.Advance(90 * time.Second)
		workflowtest.Send(run, GivenUp, "")
		driver, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, "nobody", driver)
		require.LessOrEqual(t, k.Attempts("ask"), 2)
		driver, err = workflowtest.Start(k, Ride, "2", "Main Street").Result()
		require.NoError(t, err)
		require.Equal(t, "ada", driver)
	})
}

// Reserve asks a theater for tickets, and gets the number that is left.
var Reserve = workflow.DefineUpdate[int, int]("reserve")

// Theater sells its tickets until somebody closes it.
var Theater = workflow.Define("theater", func(r *workflow.Run, free int) (int, error) {
	for {
		var ask workflow.Request[int, int]
		i, err := workflow.Select(r, "next", GivenUp.Case(nil), Reserve.Case(&ask, func(n int) error {
			if n > free {
				return fmt.Errorf("only %d are free", free)
			}
			return nil
		}))
		if i <= 0 {
			return free, err
		}
		_, err = workflow.Step(r, "print tickets", func(context.Context) (int, error) { return ask.Value, nil })
		if err == nil {
			free -= ask.Value
		}
		if err := ask.Answer(r, free, err); err != nil {
			return free, err
		}
	}
})

func reserve(ctx context.Context, e *workflow.Engine, theater *workflow.Handle[int], n int, order string) (int, error) {
	free, err := Reserve.Call(ctx, e, theater.Run(), n, "order "+order)
	if errors.Is(err, workflow.ErrRejected) {
		return 0, fmt.Errorf("sorry: %w", err)
	}
	return free, err
}

// Rule: a request gets its answer, or is rejected, whatever crashes.
func TestUpdate(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Theater)
		run := workflowtest.Start(k, Theater, "1", 10)
		left, err := workflowtest.Call(run, Reserve, 4)
		require.NoError(t, err)
		require.Equal(t, 6, left)
		_, err = workflowtest.Call(run, Reserve, 7)
		require.ErrorIs(t, err, workflow.ErrRejected)
		require.ErrorContains(t, err, "only 6 are free")
		workflowtest.Send(run, GivenUp, "")
		left, err = run.Result()
		require.NoError(t, err)
		require.Equal(t, 6, left)
		theater, err := Theater.Handle(t.Context(), k.Engine(), "1")
		require.NoError(t, err)
		_, err = reserve(t.Context(), k.Engine(), theater, 1, "1042")
		require.ErrorIs(t, err, workflow.ErrNotRunning)
	})
}

// Approved is the signal that an order waits for.
var Approved = workflow.DefineSignal[bool]("approved")

var Order = workflow.Define("order", func(r *workflow.Run, b Basket) (string, error) {
	payment, err := workflow.Step(r, "charge", func(ctx context.Context) (string, error) {
		return bank.Charge(ctx, r.Key(), b.Customer, b.Cents) // the bank ignores a key that it has seen
	})
	if err != nil {
		return "", err
	}
	r.Undo("refund", func(ctx context.Context) error { return bank.Refund(ctx, payment) })
	if _, err := Approved.Wait(r, 72*time.Hour); err != nil {
		return "", err // nobody approved it: the refund runs, and the run fails
	}
	return workflow.Step(r, "ship", func(ctx context.Context) (string, error) {
		return courier.Ship(ctx, r.Key(), b.Customer)
	})
})

// The services that the flow calls.
type service struct{ refunded []string }

var bank, courier = &service{}, &service{}

func (*service) Charge(_ context.Context, _, customer string, cents int64) (string, error) {
	return fmt.Sprint(customer, " paid ", cents), nil
}

func (s *service) Refund(_ context.Context, payment string) error {
	s.refunded = append(s.refunded, payment)
	return nil
}

func (*service) Ship(_ context.Context, _, customer string) (string, error) {
	return "parcel to " + customer, nil
}

// Rule: the README's workflow ships what was approved, and refunds what was not.
func TestReadmeWorkflow(t *testing.T) {
	k := workflowtest.New(t, nil, Order)
	approved := workflowtest.Start(k, Order, "1042", Basket{Customer: "ada", Cents: 12900})
	workflowtest.Send(approved, Approved, true)
	parcel, err := approved.Result()
	require.NoError(t, err)
	require.Equal(t, "parcel to ada", parcel)

	_, err = workflowtest.Start(k, Order, "1043", Basket{Customer: "bob", Cents: 50}).Result()
	require.ErrorIs(t, err, workflow.ErrTimeout)
	require.Equal(t, []string{"bob paid 50"}, bank.refunded)
}
