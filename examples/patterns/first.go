package patterns

import (
	"time"

	"github.com/gopawl/pawl/workflow"
)

// Request is for a ride. It expires if no driver is found within Timeout.
type Request struct{ Search, Timeout time.Duration }

// GiveUp ends a request.
var GiveUp = workflow.DefineSignal[string]("give up")

// Ride returns what came first: a driver, the end of the request, or the end of its time.
func Ride(w World) *workflow.Flow[Request, string] {
	return workflow.Define("ride", func(r *workflow.Run, q Request) (string, error) {
		search := workflow.Go(r, "search", func(r *workflow.Run) (string, error) {
			if err := workflow.Sleep(r, "drivers answer", q.Search); err != nil {
				return "", err
			}
			return "driver", do(r, w, "reserve driver")
		})
		over := workflow.Go(r, "over", func(r *workflow.Run) (reason string, err error) {
			n, err := workflow.Select(r, "given up or late", GiveUp.Case(&reason), workflow.After(q.Timeout))
			if n == 1 {
				reason = "expired"
			}
			return reason, err
		})
		_, what, err := workflow.Race(r, "ride", search, over)
		return what, err
	})
}
