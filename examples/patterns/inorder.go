package patterns

import "github.com/gopawl/pawl/workflow"

// Event is one of several events, which are numbered from 0.
type Event struct {
	Number int
	What   string
}

// Happened is an event. Events may be sent in any order.
var Happened = workflow.DefineSignal[Event]("happened")

// InOrder handles a number of events in the order of their numbers, each as soon as those before it are there.
func InOrder(w World) *workflow.Flow[int, []string] {
	return workflow.Define("in order", func(r *workflow.Run, count int) (done []string, err error) {
		early := make(map[int]string)
		for len(done) < count {
			e, err := Happened.Wait(r, workflow.Forever)
			if err != nil {
				return nil, err
			}
			early[e.Number] = e.What
			for what, ok := early[len(done)]; ok; what, ok = early[len(done)] {
				if err := do(r, w, what); err != nil {
					return nil, err
				}
				done = append(done, what)
			}
		}
		return done, nil
	})
}
