package patterns

import "github.com/gopawl/pawl/workflow"

// What can be done with an account.
var (
	Deposit = workflow.DefineSignal[int]("deposit")
	Close   = workflow.DefineSignal[string]("close")
)

// rounds is how many signals an account receives before its journal becomes empty.
const rounds = 3

// Account is a run for each account. Its input is what the account has, in cents, and so is its result.
func Account() *workflow.Flow[int, int] {
	return workflow.Define("account", func(r *workflow.Run, cents int) (int, error) {
		for range rounds {
			amount := 0
			switch n, err := workflow.Select(r, "next", Deposit.Case(&amount), Close.Case(nil)); {
			case err != nil:
				return 0, err
			case n == 1:
				return cents, nil
			}
			cents += amount
			if err := workflow.Publish(r, "cents", cents); err != nil {
				return 0, err
			}
		}
		return 0, workflow.Restart(r, cents)
	})
}
