package patterns

import (
	"fmt"
	"slices"
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
		var open []*workflow.Branch[string]
		for _, c := range checks {
			open = append(open, workflow.Go(r, c.Name, func(r *workflow.Run) (string, error) {
				if err := workflow.Sleep(r, "delay", c.After); err != nil {
					return "", err
				}
				return c.Name, do(r, w, c.Name)
			}))
		}
		for len(open) > 0 {
			var cases []workflow.Case
			for _, b := range open {
				cases = append(cases, b.Case(nil))
			}
			n, err := workflow.Select(r, "next", cases...)
			if n < 0 {
				return 0, err // the run does not continue now
			}
			if err != nil {
				failed := open[n]
				others := slices.Delete(open, n, n+1)
				_, _, err = workflow.Race(r, "failed", append([]*workflow.Branch[string]{failed}, others...)...)
				return 0, fmt.Errorf("a check failed: %w", err)
			}
			open = slices.Delete(open, n, n+1)
		}
		return len(checks), nil
	})
}
