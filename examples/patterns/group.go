package patterns

import (
	"time"

	"github.com/gopawl/pawl/workflow"
)

// Check is one of several checks. It does what it is named for after a delay.
type Check struct {
	Name  string
	After time.Duration
}

// CheckAll runs checks at the same time. When one fails, it abandons the others and returns that error.
func CheckAll(w World) *workflow.Flow[[]Check, int] {
	return workflow.Define("check all", func(r *workflow.Run, checks []Check) (int, error) {
		var all []*workflow.Branch[string]
		for _, c := range checks {
			all = append(all, workflow.Go(r, c.Name, func(r *workflow.Run) (string, error) {
				if err := workflow.Sleep(r, "delay", c.After); err != nil {
					return "", err
				}
				return c.Name, do(r, w, c.Name)
			}))
		}
		_, err := workflow.AllOrNone(r, "checks", all...)
		return len(checks), err
	})
}
