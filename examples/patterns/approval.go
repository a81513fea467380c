package patterns

import (
	"errors"
	"time"

	"github.com/gopawl/pawl/workflow"
)

// Expense is paid if one of the people approves it. Each has Timeout for an answer.
type Expense struct {
	People  []string
	Timeout time.Duration
}

// Approved is the answer.
var Approved = workflow.DefineSignal[bool]("approved")

// Pay returns what became of an expense: paid, rejected, or expired.
func Pay(w World) *workflow.Flow[Expense, string] {
	return workflow.Define("pay", func(r *workflow.Run, x Expense) (string, error) {
		for _, person := range x.People {
			if err := do(r, w, "ask "+person); err != nil {
				return "", err
			}
			yes, err := Approved.Wait(r, x.Timeout)
			switch {
			case errors.Is(err, workflow.ErrTimeout):
				continue // with the next person
			case err != nil:
				return "", err
			case !yes:
				return "rejected", nil
			}
			return "paid", do(r, w, "pay")
		}
		return "expired", nil
	})
}
